from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.fleet import Fleet, load
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_local.layout import DEFAULT, REGIONS, Topology, lay_out
from fleetgauge_local.storage import fleet_file
from fleetgauge_local.traffic import FLOWS, again_and_again, aggregate, main, record, regions, traffic_spec


def fleet(topology: Topology, folder: Path) -> Fleet:
    layout = lay_out(topology.clusters, {}, iter(range(20000, 21000)), topology.mirrors)
    path = folder / "fleet.yaml"
    path.write_text(fleet_file(layout))
    return load(path)


def test_records_are_produced_in_the_regions_and_consumed_in_the_first_aggregate(tmp_path: Path) -> None:
    described = fleet(REGIONS, tmp_path)
    assert [one.id for one in regions(described)] == ["north", "south"]
    assert aggregate(described).id == "north-all"


def test_where_nothing_is_copied_there_are_no_regions(tmp_path: Path) -> None:
    assert regions(fleet(Topology(DEFAULT), tmp_path)) == ()


def test_a_record_says_its_region_and_number_and_keys_come_again() -> None:
    assert record("north", 7) == ("customer-7", b"north 7")
    keys = [record("south", number)[0] for number in range(200)]
    assert len(set(keys)) == 50
    assert keys[:50] == keys[50:100]


def test_its_topics_are_the_clusters_own_number_of_copies() -> None:
    found = [(flow.topic, flow.spec.partitions, flow.spec.replication_factor, flow.group) for flow in FLOWS]
    assert found == [("orders", 3, -1, "billing"), ("payments", 1, -1, "ledger")]


def test_it_is_a_service_of_its_own_module() -> None:
    spec = traffic_spec(Path("/fleet.yaml"))
    assert (spec.module, spec.arguments) == ("fleetgauge_local.traffic", ("/fleet.yaml",))


def test_what_fails_is_begun_again_until_it_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fleetgauge_local.traffic._AGAIN_S", 0)
    stopping, begun = Stopping(), []

    def work(_: Stopping) -> None:
        begun.append(len(begun))
        if len(begun) == 3:
            stopping.set()
        raise OSError("nobody answers")

    again_and_again("billing", work, stopping)
    assert begun == [0, 1, 2]
    assert caplog.messages == ["billing begins again: nobody answers"] * 3


def test_without_a_fleet_file_it_refuses(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path / "fleet.yaml")])
    assert done.exit_code == 2
    assert "does not exist" in done.stderr
