"""Whose folder it is: a simulation's own, anybody else's, or one that broke off."""

import json
from pathlib import Path

import pytest

from fleetgauge_core.fleet import load
from fleetgauge_core.lake.lease import LeaseError, lease
from fleetgauge_pipelines.jobs.simulate_folder import ForeignFolderError, SimulatedFolder
from tests.unit.pipelines.simulation.histories import history

ARGUMENTS = {"seed": 1}
MADE = {"clusters": 3}


def _begun(path: Path) -> SimulatedFolder:
    folder = SimulatedFolder(path)
    folder.begin(ARGUMENTS, history(), {})
    return folder


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_is_free(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "new"
    if exists:
        folder.mkdir()
    assert SimulatedFolder(folder).made(ARGUMENTS) is None


def test_what_is_finished_is_known_by_its_arguments(tmp_path: Path) -> None:
    folder = _begun(tmp_path)
    assert folder.made(ARGUMENTS) is None
    folder.finish(ARGUMENTS, MADE)
    assert folder.made(ARGUMENTS) == MADE
    assert folder.made({"seed": 2}) is None


def test_it_holds_a_fleet_file_and_a_ledger_from_the_start(tmp_path: Path) -> None:
    folder = _begun(tmp_path / "deep" / "down")
    fleet = load(folder.config)
    assert (fleet.simulated, fleet.lake) == (True, str(folder.lake))
    ledger = json.loads((folder.path / "ledger.json").read_text())
    assert ledger == history().ledger()


def test_beginning_again_leaves_nothing_of_before(tmp_path: Path) -> None:
    folder = _begun(tmp_path)
    for name in ("lake", "records"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("old")
    folder.begin({"seed": 2}, history(2), {})
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "fleet.yaml",
        "ledger.json",
        "simulation.json",
    ]


def test_a_torn_stamp_is_a_simulation_that_broke_off(tmp_path: Path) -> None:
    folder = _begun(tmp_path)
    (tmp_path / "simulation.json").write_text('{"argu')
    assert folder.made(ARGUMENTS) is None


@pytest.mark.parametrize("name", ["notes.txt", "fleet.yaml", "lake"])
def test_what_no_simulation_made_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ForeignFolderError, match=f"{name} was not made by a simulation"):
        SimulatedFolder(tmp_path).made(ARGUMENTS)
    assert (tmp_path / name).read_text() == "mine"


def test_a_stranger_beside_a_simulation_is_left_alone(tmp_path: Path) -> None:
    folder = _begun(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ForeignFolderError, match=r"notes\.txt"):
        folder.made(ARGUMENTS)


def test_a_link_to_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder = _begun(tmp_path / "own")
    (tmp_path / "real-lake").mkdir()
    folder.lake.symlink_to(tmp_path / "real-lake")
    with pytest.raises(ForeignFolderError, match="lake"):
        folder.made(ARGUMENTS)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ForeignFolderError, match="is a file"):
        SimulatedFolder(tmp_path / "file").made(ARGUMENTS)


def test_a_lake_that_a_pipeline_writes_is_not_taken_away(tmp_path: Path) -> None:
    folder = _begun(tmp_path)
    folder.finish(ARGUMENTS, MADE)
    with lease(str(folder.lake)), pytest.raises(LeaseError):
        folder.begin({"seed": 2}, history(2), {})
    assert folder.lake.exists()
    assert folder.made(ARGUMENTS) == MADE
