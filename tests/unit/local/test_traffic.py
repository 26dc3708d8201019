from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.layout import DEFAULT_CLUSTERS, REGIONS, Topology, build_layout
from fleetgauge_local.provisioning import render_fleet_file
from fleetgauge_local.traffic import (
    WORKLOADS,
    build_record,
    build_traffic_service,
    find_aggregate,
    list_source_clusters,
    main,
    run_with_retries,
)


def fleet(topology: Topology, folder: Path) -> Fleet:
    layout = build_layout(topology.clusters, {}, iter(range(20000, 21000)), topology.mirrors)
    path = folder / "fleet.yaml"
    path.write_text(render_fleet_file(layout))
    return load_fleet(path)


def test_producers_run_in_the_regions_and_consumers_in_the_first_aggregate(tmp_path: Path) -> None:
    regions_fleet = fleet(REGIONS, tmp_path)
    assert [cluster.id for cluster in list_source_clusters(regions_fleet)] == ["north", "south"]
    assert find_aggregate(regions_fleet).id == "north-all"


def test_a_fleet_without_mirrors_has_no_source_clusters(tmp_path: Path) -> None:
    assert list_source_clusters(fleet(Topology(DEFAULT_CLUSTERS), tmp_path)) == ()


def test_a_record_contains_its_region_and_number_and_keys_repeat() -> None:
    assert build_record("north", 7) == ("customer-7", b"north 7")
    keys = [build_record("south", number)[0] for number in range(200)]
    assert len(set(keys)) == 50
    assert keys[:50] == keys[50:100]


def test_topics_have_the_clusters_default_replication_factor() -> None:
    workloads = [
        (workload.topic, workload.spec.partitions, workload.spec.replication_factor, workload.group)
        for workload in WORKLOADS
    ]
    assert workloads == [("orders", 3, -1, "billing"), ("payments", 1, -1, "ledger")]


def test_the_traffic_service_runs_this_module() -> None:
    spec = build_traffic_service(Path("/fleet.yaml"))
    assert (spec.module, spec.arguments) == ("fleetgauge_local.traffic", ("/fleet.yaml",))


def test_failed_work_is_restarted_until_shutdown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fleetgauge_local.traffic._RETRY_DELAY_S", 0)
    shutdown, runs = ShutdownFlag(), []

    def work(_: ShutdownFlag) -> None:
        runs.append(len(runs))
        if len(runs) == 3:
            shutdown.set()
        raise OSError("connection refused")

    run_with_retries("billing", work, shutdown)
    assert runs == [0, 1, 2]
    assert caplog.messages == ["billing failed, restarting it: connection refused"] * 3


def test_a_missing_fleet_file_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [str(tmp_path / "fleet.yaml")])
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
