from pathlib import Path

import pytest

from fleetgauge_probes.agent.fleet_file import FleetFile

CLUSTER = "clusters: [{id: orders, bootstrap: 'orders:9092'%s}]\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    replace_file(path, CLUSTER % "")
    return path


def replace_file(path: Path, text: str) -> None:
    """Replace a file by renaming another one, as editors and Kubernetes do."""
    new_path = path.with_suffix(".new")
    new_path.write_text(text, encoding="utf-8")
    new_path.replace(path)


def load(path: Path) -> FleetFile:
    fleet_file = FleetFile(path)
    fleet_file.load()
    return fleet_file


def test_the_current_clusters_follow_changes_of_the_file(path: Path) -> None:
    fleet_file = load(path)
    before = fleet_file.current_clusters()
    assert [cluster.id for cluster in before] == ["orders"]
    assert fleet_file.current_clusters() is before
    replace_file(path, CLUSTER % ", retired: [3]")
    assert fleet_file.current_clusters()[0].retired == (3,)


@pytest.mark.parametrize("invalid", ["clusters: []\n", "clusters: [\n", ""])
def test_an_invalid_or_missing_file_leaves_the_previous_clusters(
    path: Path, invalid: str, caplog: pytest.LogCaptureFixture
) -> None:
    fleet_file = load(path)
    before = fleet_file.current_clusters()
    replace_file(path, invalid)
    assert fleet_file.current_clusters() == fleet_file.current_clusters() == before
    assert len([line for line in caplog.messages if "continuing with the previous clusters" in line]) == 1
    path.unlink()
    assert fleet_file.current_clusters() == before
    replace_file(path, CLUSTER % ", managed: false")
    assert fleet_file.current_clusters()[0].managed is False


def test_a_change_that_needs_a_restart_is_logged_and_not_applied(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fleet_file = load(path)
    replace_file(path, "vantage: elsewhere\n" + CLUSTER % "")
    assert [cluster.id for cluster in fleet_file.current_clusters()] == ["orders"]
    assert fleet_file.fleet.vantage == "default"
    assert any("need a restart" in line for line in caplog.messages)
