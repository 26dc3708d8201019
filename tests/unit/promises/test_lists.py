"""Promises that are too slow for `make check`: those of runs, of pages and of modules that import Spark."""

import pytest

from tests.promises import lists
from tests.promises.kinds import QUICK, slow

# kafka-python calls deprecated functions when a command is imported.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.mark.parametrize("name", slow())
def test_every_promise_is_kept_and_listed(name: str) -> None:
    assert lists.differences(name, slow()[name].collect()) == []


def test_every_list_is_compared() -> None:
    assert {path.stem for path in lists.FOLDER.glob("*.txt")} == {*QUICK, *slow()}
