"""Reading commands end with their own exit code, whoever reads them. Here: one command for each way to read
tables, and one that fails; `make chaos ARGS=exits` runs all."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.exits import Way, run_command
from tests.promises.run_promises import write_inputs

_RUNS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    with chdir(folder):
        write_inputs(folder)
    return folder


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("explain orders-eu 2026-03-02", 0),
        ("compare --by region=eu,us", 0),
        ("correct list", 0),
        ("quarantine list", 0),
        ("explain nobody 2026-03-02", 2),
    ],
)
def test_a_command_ends_with_its_exit_code_in_twenty_runs(folder: Path, command: str, code: int) -> None:
    with ThreadPoolExecutor(2) as workers:
        runs = workers.map(lambda way: run_command(command.split(), way, folder), islice(cycle(Way), _RUNS))
        assert set(runs) == {(code, "")}
