import json
from pathlib import Path

import pytest

from fleetgauge_core.fleet.load import load
from fleetgauge_local.control import ask
from fleetgauge_local.errors import LocalFleetError, NoFleetError
from fleetgauge_local.folder import Folder, RunningBroker, RunningMirror, State, read, write
from fleetgauge_local.layout import DEFAULT, REGIONS, Layout, Topology, lay_out, name_clusters
from fleetgauge_local.messages import Request
from fleetgauge_local.processes import Identity
from fleetgauge_local.storage import fleet_file, kafka_uuid

CLUSTERS = Topology(DEFAULT)


def layout(topology: Topology = CLUSTERS) -> Layout:
    clusters = topology.clusters
    uuids = name_clusters(clusters, kafka_uuid)
    return lay_out(clusters, uuids, iter(range(20000, 21000)), topology.mirrors)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    state = State(
        Identity(1, 2.5),
        tmp_path / "runner.sock",
        (RunningBroker("orders-1", Identity(3, 4.5), 5, 6),),
        (RunningMirror("north-all", Identity(7, 8.5)),),
    )
    write(tmp_path / "state.json", state)
    assert read(tmp_path / "state.json", State) == state
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("topology", [Topology(DEFAULT), REGIONS], ids=["clusters", "regions"])
def test_a_layout_survives_its_file(topology: Topology, tmp_path: Path) -> None:
    written = layout(topology)
    write(tmp_path / "layout.json", written)
    assert read(tmp_path / "layout.json", Layout) == written


def test_a_layout_from_before_there_were_mirrors_is_read(tmp_path: Path) -> None:
    write(tmp_path / "layout.json", layout())
    older = json.loads((tmp_path / "layout.json").read_bytes())
    del older["mirrors"]
    (tmp_path / "layout.json").write_text(json.dumps(older))
    kept = read(tmp_path / "layout.json", Layout)
    assert kept is not None
    assert kept.clusters == DEFAULT
    assert kept.mirrors == ()


def test_a_file_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"runner": 1}')
    with pytest.raises(LocalFleetError, match=r"state\.json: not written by this version: remove"):
        read(path, State)


def test_nothing_written_is_nothing_read(tmp_path: Path) -> None:
    assert read(tmp_path / "state.json", State) is None


def test_asking_where_no_fleet_runs_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NoFleetError, match=r"no fleet runs in .*: start it with fleetgauge fleet up"):
        ask(Folder(tmp_path), Request("status"))


def test_the_fleet_file_describes_the_measured_clusters_and_the_one_that_carries_records(
    tmp_path: Path,
) -> None:
    (tmp_path / "fleet.yaml").write_text(fleet_file(layout()))
    fleet = load(tmp_path / "fleet.yaml")
    assert [(cluster.id, cluster.region, cluster.tier) for cluster in fleet.clusters] == [
        ("orders", "north", "multi-zone"),
        ("payments", "south", "multi-zone"),
    ]
    assert fleet.telemetry is not None
    assert fleet.telemetry.bootstrap == layout().bootstrap("telemetry")
    assert fleet.lake == str(tmp_path / "lake")


def test_the_fleet_file_of_the_regions_says_which_region_each_cluster_stands_in(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(fleet_file(layout(REGIONS)))
    fleet = load(tmp_path / "fleet.yaml")
    assert [(cluster.id, cluster.region, cluster.tier) for cluster in fleet.clusters] == [
        ("north", "north", "single-zone"),
        ("south", "south", "single-zone"),
        ("north-all", "north", "single-zone"),
        ("south-all", "south", "single-zone"),
    ]
    assert {cluster.labels["brokers"] for cluster in fleet.clusters} == {"1"}
    assert fleet.telemetry is not None
    assert fleet.telemetry.bootstrap == layout(REGIONS).bootstrap("telemetry")
    assert fleet.recovery.limits.stale_s == 30
