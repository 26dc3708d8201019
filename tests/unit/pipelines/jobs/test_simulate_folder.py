"""The output folder of a simulation: new, finished, interrupted, or with files of others."""

import json
from pathlib import Path

import pytest

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.lake.lease import LeaseError, hold_lease
from fleetgauge_pipelines.jobs.changes import read_change_file
from fleetgauge_pipelines.jobs.simulate_folder import ForeignFolderError, SimulatedFolder
from tests.unit.pipelines.simulation.histories import MONDAY, history

ARGUMENTS = {"seed": 1}
RESULT = {"clusters": 3}


def _begin(path: Path) -> SimulatedFolder:
    folder = SimulatedFolder(path)
    folder.begin(ARGUMENTS, history(), {})
    return folder


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_has_no_result(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "new"
    if exists:
        folder.mkdir()
    assert SimulatedFolder(folder).read_result(ARGUMENTS) is None


def test_a_finished_simulation_is_recognized_by_its_arguments(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    assert folder.read_result(ARGUMENTS) is None
    folder.finish(ARGUMENTS, RESULT)
    assert folder.read_result(ARGUMENTS) == RESULT
    assert folder.read_result({"seed": 2}) is None


def test_a_begun_simulation_has_a_fleet_file_and_a_ledger(tmp_path: Path) -> None:
    folder = _begin(tmp_path / "deep" / "down")
    fleet = load_fleet(folder.config)
    assert (fleet.simulated, fleet.lake) == (True, str(folder.lake))
    ledger = json.loads((folder.path / "ledger.json").read_text())
    assert ledger == history().ledger()
    assert len(read_change_file(folder.path / "changes.json", fleet, MONDAY)) == len(
        list(history().change_records())
    )


def test_beginning_again_deletes_the_earlier_simulation(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    for name in ("lake", "records"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("old")
    folder.begin({"seed": 2}, history(2), {})
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "changes.json",
        "fleet.yaml",
        "ledger.json",
        "simulation.json",
    ]


def test_a_truncated_stamp_is_an_interrupted_simulation(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    (tmp_path / "simulation.json").write_text('{"argu')
    assert folder.read_result(ARGUMENTS) is None


@pytest.mark.parametrize("name", ["notes.txt", "fleet.yaml", "lake"])
def test_a_folder_with_files_of_others_is_refused_and_unchanged(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ForeignFolderError, match=f"{name} was not written by a simulation"):
        SimulatedFolder(tmp_path).read_result(ARGUMENTS)
    assert (tmp_path / name).read_text() == "mine"


def test_a_foreign_file_beside_a_simulation_is_refused(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ForeignFolderError, match=r"notes\.txt"):
        folder.read_result(ARGUMENTS)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    folder = _begin(tmp_path / "own")
    (tmp_path / "real-lake").mkdir()
    folder.lake.symlink_to(tmp_path / "real-lake")
    with pytest.raises(ForeignFolderError, match="lake"):
        folder.read_result(ARGUMENTS)


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ForeignFolderError, match="is a file"):
        SimulatedFolder(tmp_path / "file").read_result(ARGUMENTS)


def test_a_lake_with_a_held_lease_is_not_deleted(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    folder.finish(ARGUMENTS, RESULT)
    with hold_lease(str(folder.lake), "another command", print), pytest.raises(LeaseError):
        folder.begin({"seed": 2}, history(2), {})
    assert folder.lake.exists()
    assert folder.read_result(ARGUMENTS) == RESULT
