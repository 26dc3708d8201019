import json
from pathlib import Path

import pytest

from fleetgauge_core.fleet.load import load_fleet
from fleetgauge_local.errors import LocalFleetError, NoFleetError
from fleetgauge_local.fleet_folder import (
    FleetFolder,
    RunnerState,
    RunningBroker,
    RunningMirror,
    read_json,
    write_json,
)
from fleetgauge_local.layout import (
    DEFAULT_CLUSTERS,
    REGIONS,
    FleetLayout,
    Topology,
    assign_kafka_uuids,
    build_layout,
)
from fleetgauge_local.processes import ProcessIdentity
from fleetgauge_local.provisioning import generate_kafka_uuid, render_fleet_file
from fleetgauge_local.runner_client import call_runner
from fleetgauge_local.runner_protocol import RunnerRequest

CLUSTERS = Topology(DEFAULT_CLUSTERS)


def create_layout(topology: Topology = CLUSTERS) -> FleetLayout:
    clusters = topology.clusters
    uuids = assign_kafka_uuids(clusters, generate_kafka_uuid)
    return build_layout(clusters, uuids, iter(range(20000, 21000)), topology.mirrors)


def test_a_written_state_can_be_read(tmp_path: Path) -> None:
    state = RunnerState(
        ProcessIdentity(1, 2.5),
        tmp_path / "runner.sock",
        (RunningBroker("orders-1", ProcessIdentity(3, 4.5), 5, 6),),
        (RunningMirror("north-all", ProcessIdentity(7, 8.5)),),
    )
    write_json(tmp_path / "state.json", state)
    assert read_json(tmp_path / "state.json", RunnerState) == state
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("topology", [Topology(DEFAULT_CLUSTERS), REGIONS], ids=["clusters", "regions"])
def test_a_written_layout_can_be_read(topology: Topology, tmp_path: Path) -> None:
    written = create_layout(topology)
    write_json(tmp_path / "layout.json", written)
    assert read_json(tmp_path / "layout.json", FleetLayout) == written


def test_a_layout_file_without_mirrors_can_be_read(tmp_path: Path) -> None:
    write_json(tmp_path / "layout.json", create_layout())
    old_document = json.loads((tmp_path / "layout.json").read_bytes())
    del old_document["mirrors"]
    (tmp_path / "layout.json").write_text(json.dumps(old_document))
    kept = read_json(tmp_path / "layout.json", FleetLayout)
    assert kept is not None
    assert kept.clusters == DEFAULT_CLUSTERS
    assert kept.mirrors == ()


def test_reading_a_file_of_an_incompatible_version_fails_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"runner": 1}')
    with pytest.raises(LocalFleetError, match=r"state\.json: written by an incompatible version: remove"):
        read_json(path, RunnerState)


def test_reading_a_missing_file_returns_none(tmp_path: Path) -> None:
    assert read_json(tmp_path / "state.json", RunnerState) is None


def test_a_request_without_a_running_fleet_fails_and_names_the_start_command(tmp_path: Path) -> None:
    with pytest.raises(NoFleetError, match=r"no fleet runs in .*: start it with `fleetgauge fleet up`"):
        call_runner(FleetFolder(tmp_path), RunnerRequest("status"))


def test_the_fleet_file_lists_the_measured_clusters_and_the_telemetry_cluster(
    tmp_path: Path,
) -> None:
    (tmp_path / "fleet.yaml").write_text(render_fleet_file(create_layout()))
    fleet = load_fleet(tmp_path / "fleet.yaml")
    assert [(cluster.id, cluster.region, cluster.tier) for cluster in fleet.clusters] == [
        ("orders", "north", "multi-zone"),
        ("payments", "south", "multi-zone"),
    ]
    assert fleet.telemetry is not None
    assert fleet.telemetry.bootstrap == create_layout().bootstrap("telemetry")
    assert fleet.lake == str(tmp_path / "lake")


def test_the_fleet_file_of_the_regions_topology_gives_each_clusters_region(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(render_fleet_file(create_layout(REGIONS)))
    fleet = load_fleet(tmp_path / "fleet.yaml")
    assert [(cluster.id, cluster.region, cluster.tier) for cluster in fleet.clusters] == [
        ("north", "north", "single-zone"),
        ("south", "south", "single-zone"),
        ("north-all", "north", "single-zone"),
        ("south-all", "south", "single-zone"),
    ]
    assert {cluster.labels["brokers"] for cluster in fleet.clusters} == {"1"}
    assert fleet.telemetry is not None
    assert fleet.telemetry.bootstrap == create_layout(REGIONS).bootstrap("telemetry")
    assert fleet.recovery.limits.stale_s == 30
