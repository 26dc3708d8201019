from pathlib import Path

import pytest

from fleetgauge_probes.agent.fleet_file import FleetFile

CLUSTER = "clusters: [{id: orders, bootstrap: 'orders:9092'%s}]\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    write(path, CLUSTER % "")
    return path


def write(path: Path, text: str) -> None:
    """As editors and Kubernetes do: another file in its place."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def opened(path: Path) -> FleetFile:
    file = FleetFile(path)
    file.read()
    return file


def test_clusters_are_those_of_the_file_as_it_is_now(path: Path) -> None:
    file = opened(path)
    first = file.clusters()
    assert [one.id for one in first] == ["orders"]
    assert file.clusters() is first
    write(path, CLUSTER % ", retired: [3]")
    assert file.clusters()[0].retired == (3,)


@pytest.mark.parametrize("broken", ["clusters: []\n", "clusters: [\n", ""])
def test_a_file_that_cannot_be_read_changes_nothing_until_it_can(
    path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = opened(path)
    first = file.clusters()
    write(path, broken)
    assert file.clusters() == file.clusters() == first
    assert len([one for one in caplog.messages if "going on with what it said before" in one]) == 1
    path.unlink()
    assert file.clusters() == first
    write(path, CLUSTER % ", managed: false")
    assert file.clusters()[0].managed is False


def test_what_takes_a_restart_is_said(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = opened(path)
    write(path, "vantage: elsewhere\n" + CLUSTER % "")
    assert [one.id for one in file.clusters()] == ["orders"]
    assert file.fleet.vantage == "default"
    assert any("takes a restart" in one for one in caplog.messages)
