"""What is too slow for `make check`: promises that are collected from runs, from pages and beside Spark."""

import pytest

from tests.promises import lists
from tests.promises.kinds import QUICK, slow

# kafka-python reads its own schemas so when a command is imported.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.mark.parametrize("name", slow())
def test_every_promise_is_kept_and_listed(name: str) -> None:
    assert lists.differences(name, slow()[name].collect()) == []


def test_no_list_is_left_uncompared() -> None:
    assert {path.stem for path in lists.FOLDER.glob("*.txt")} == {*QUICK, *slow()}
