"""A fleet file that changes while a process runs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetgauge_core.fleet import FleetFileError
from fleetgauge_core.fleet.fleet_file import FleetFile

CLUSTER = "clusters: [{id: orders, bootstrap: 'orders:9092'%s}]\n"


@dataclass
class ReloadedFile:
    """A fleet file in a folder, and the clock of the process that reads it."""

    path: Path
    now_s: float = 0.0

    def open(self, *, strict: bool = False) -> FleetFile:
        fleet_file = FleetFile(
            self.path,
            lambda: self.now_s,
            applied_keys=("clusters", "notifiers"),
            unused_keys=("page_url",),
            strict=strict,
        )
        fleet_file.load()
        return fleet_file

    def replace(self, text: str) -> None:
        """Replace the file by renaming another one, as editors do."""
        new_path = self.path.with_suffix(".new")
        new_path.write_text(text, encoding="utf-8")
        new_path.replace(self.path)

    def settle(self, fleet_file: FleetFile) -> list[str]:
        """Return the IDs of the clusters once a change, if there is one, has been seen for a second."""
        fleet_file.refresh()
        self.now_s += 1.5
        return [cluster.id for cluster in fleet_file.refresh().clusters]


@pytest.fixture
def file(tmp_path: Path) -> ReloadedFile:
    file = ReloadedFile(tmp_path / "fleet.yaml")
    file.replace(CLUSTER % "")
    return file


def test_the_fleet_follows_changes_of_the_file(file: ReloadedFile) -> None:
    fleet_file = file.open()
    before = fleet_file.fleet
    assert file.settle(fleet_file) == ["orders"]
    assert fleet_file.fleet is before
    file.replace(CLUSTER % ", retired: [3]")
    file.settle(fleet_file)
    assert fleet_file.fleet.clusters[0].retired == (3,)


def test_a_file_is_not_read_while_it_is_written(file: ReloadedFile, caplog: pytest.LogCaptureFixture) -> None:
    lines = [f"- {{id: c{number}, bootstrap: 'c:9092'}}\n" for number in range(3)]
    file.replace("clusters:\n" + "".join(lines))
    fleet_file = file.open()
    for end in range(4):
        # Each of these is valid or not, but never complete.
        file.path.write_text("clusters:\n" + "".join(lines[:end]), encoding="utf-8")
        fleet_file.refresh()
        file.now_s += 0.9
        assert len(fleet_file.refresh().clusters) == 3
        file.now_s += 0.05
    file.path.write_text("clusters:\n" + "".join([*lines, lines[0].replace("c0", "c3")]), encoding="utf-8")
    assert file.settle(fleet_file) == ["c0", "c1", "c2", "c3"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_links_may_be_swapped_as_kubernetes_swaps_a_config_map(tmp_path: Path) -> None:
    for version, cluster in (("..v1", "orders"), ("..v2", "payments")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "fleet.yaml").write_text(CLUSTER.replace("orders,", f"{cluster},") % "")
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "fleet.yaml").symlink_to("..data/fleet.yaml")
    file = ReloadedFile(tmp_path / "fleet.yaml")
    fleet_file = file.open()
    assert file.settle(fleet_file) == ["orders"]
    (tmp_path / "..data_tmp").symlink_to("..v2")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    (tmp_path / "..v1" / "fleet.yaml").unlink()
    assert file.settle(fleet_file) == ["payments"]


@pytest.mark.parametrize("invalid", ["clusters: []\n", "clusters: [\n", "", CLUSTER % ", tier: [1"])
def test_an_invalid_or_missing_file_leaves_the_previous_fleet(
    file: ReloadedFile, invalid: str, caplog: pytest.LogCaptureFixture
) -> None:
    fleet_file = file.open()
    file.replace(invalid)
    assert file.settle(fleet_file) == file.settle(fleet_file) == ["orders"]
    assert len([line for line in caplog.messages if "continuing with the previous fleet" in line]) == 1
    file.path.unlink()
    assert file.settle(fleet_file) == ["orders"]
    file.replace(CLUSTER % ", managed: false")
    file.settle(fleet_file)
    assert fleet_file.fleet.clusters[0].managed is False


def test_a_change_that_needs_a_restart_is_logged_once_and_not_applied(
    file: ReloadedFile, caplog: pytest.LogCaptureFixture
) -> None:
    fleet_file = file.open()
    for retired in ("1", "2"):
        file.replace("vantage: elsewhere\npage_url: http://pages\n" + CLUSTER % f", retired: [{retired}]")
        file.settle(fleet_file)
    assert fleet_file.fleet.vantage == "default"
    assert fleet_file.fleet.clusters[0].retired == (2,)
    lines = [line for line in caplog.messages if "restart" in line]
    assert lines == [f"{file.path}: a change of vantage needs a restart"]


@pytest.mark.parametrize("bad", [", tier: platinum", ", retired: [-1]", ", unknown: 1"])
def test_a_cluster_keeps_its_entry_when_it_becomes_bad(file: ReloadedFile, bad: str) -> None:
    fleet_file = file.open()
    file.replace((CLUSTER % bad) + "notifiers: [{kind: webhook, url: 'http://hook'}]\n")
    assert file.settle(fleet_file) == ["orders"]
    assert fleet_file.fleet.clusters[0].tier == "single-zone"
    assert len(fleet_file.fleet.notifiers) == 1
    file.replace(CLUSTER % ", tier: multi-zone")
    file.settle(fleet_file)
    assert (fleet_file.fleet.clusters[0].tier, fleet_file.problems) == ("multi-zone", ())


def test_a_strict_process_refuses_a_file_with_a_bad_entry(
    file: ReloadedFile, caplog: pytest.LogCaptureFixture
) -> None:
    two = "clusters: [{id: orders, bootstrap: 'orders:9092'}, {id: carts, bootstrap: '%s'}]\n"
    fleet_file = file.open(strict=True)
    file.replace(two % "carts:0")
    assert file.settle(fleet_file) == ["orders"]
    assert "continuing with the previous fleet" in caplog.text
    with pytest.raises(FleetFileError, match=r"clusters\.1\.bootstrap"):
        file.open(strict=True)
    assert [cluster.id for cluster in file.open().fleet.clusters] == ["orders"]
