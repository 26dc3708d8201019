"""`fleetgauge lake repair` of tables of which nothing has to be computed again."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.runtime.cli import main
from fleetgauge_core.tables import ACTIONS, CLUSTER_WEEKS
from tests.damage import empty, remove
from tests.lake_writer import another_holder
from tests.promises.run_promises import write_inputs


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    return tmp_path / "lake"


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(main, [*arguments, "--lake", "lake"], prog_name="fleetgauge")
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.stdout if exit_code < 2 else result.stderr


def repair(*options: str, exit_code: int = 0) -> dict[str, Any]:
    lines = json.loads(run("lake", "repair", "--json", *options, exit_code=exit_code))
    return {line["table"]: line for line in lines if line["outcome"] != "whole"}


def damage_newest_commit(lake: Path, table_path: str) -> str:
    newest = max((lake / table_path / "_delta_log").glob("*.json"))
    empty(newest)
    return newest.name


def test_a_lake_that_is_whole_stays_as_it_is(lake: Path) -> None:
    def list_files() -> dict[Path, int]:
        folders = [folder for folder in lake.iterdir() if folder.name != "_checkpoints"]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {path: path.stat().st_mtime_ns for path in files}

    before = list_files()
    assert repair() == {}
    assert list_files() == before


def test_a_loss_is_shown_and_left_until_it_is_accepted(lake: Path) -> None:
    name = damage_newest_commit(lake, ACTIONS.path)
    for options in ((), ("--dry-run",)):
        (line,) = repair(*options, exit_code=1).values()
        assert line["outcome"] == "damaged"
        assert f"_delta_log/{name} is empty; version " in line["detail"]
        assert line["detail"].endswith("and later changes are lost")
    assert repair("--accept-loss", "--dry-run")[ACTIONS.path]["outcome"] == "lost"
    assert repair("--accept-loss")[ACTIONS.path]["outcome"] == "lost"
    assert repair() == {}
    TableStore(str(lake), ACTIONS).rows()


def test_a_reader_names_the_file_and_the_repair(lake: Path) -> None:
    name = damage_newest_commit(lake, CLUSTER_WEEKS.path)
    message = run("slo", exit_code=2)
    assert (
        f"gold/cluster_weeks: _delta_log/{name} is empty: restore the table from a backup, or run" in message
    )
    assert "`fleetgauge lake repair`" in message


def test_a_table_that_is_gone_begins_again_if_that_is_accepted(lake: Path) -> None:
    remove(lake / ACTIONS.path)
    (line,) = repair(exit_code=1).values()
    assert line["detail"].startswith("_delta_log is gone, but version ")
    assert repair("--accept-loss")[ACTIONS.path]["outcome"] == "lost"
    TableStore(str(lake), ACTIONS).create()
    assert TableStore(str(lake), ACTIONS).rows() == []


def test_nothing_is_repaired_beside_a_writer(lake: Path) -> None:
    damage_newest_commit(lake, ACTIONS.path)
    with another_holder(str(lake)):
        assert "another pipeline is writing this lake" in run("lake", "repair", exit_code=2)
        assert repair("--dry-run", exit_code=1)


def test_a_lake_that_is_not_there_is_no_whole_lake(lake: Path) -> None:
    remove(lake)
    assert "no lake found" in run("lake", "repair", exit_code=2)
    lake.mkdir()
    assert "no lake found" in run("lake", "repair", exit_code=2)
    assert list(lake.iterdir()) == []
