"""`fleetgauge validate --connect` with brokers that are healthy, hung, wrongly advertised or secured."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder, FleetPlan, read_json
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.connection.validate import validate
from tests.kafka.acls import DENY, add_acl

CHECK_NAMES = {"reachable", "brokers", "version", "rights", "clock", "topics"}
#: An inspection takes 10 s at most; the rest is for the start of the command on a busy machine.
TIME_LIMIT_S = 20

Checks = dict[str, dict[str, Any]]


def validate_connections(config: Path) -> tuple[int, dict[str, Checks]]:
    """Return the exit code, and each cluster's checks by name."""
    started = time.monotonic()
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    assert time.monotonic() - started < TIME_LIMIT_S
    clusters = json.loads(result.stdout)["clusters"]
    checks_by_cluster = {
        cluster["cluster"]: {check["check"]: check for check in cluster["checks"]} for cluster in clusters
    }
    return result.exit_code, checks_by_cluster


def write_fleet_file(folder: Path, telemetry: str, **clusters: str) -> Path:
    document = {
        "telemetry": {"bootstrap": telemetry},
        "clusters": [{"id": name, "bootstrap": bootstrap} for name, bootstrap in clusters.items()],
    }
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def list_topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def test_a_healthy_fleet_passes_all_checks_and_is_not_changed(local_fleet: LocalFleet) -> None:
    before = {name: list_topics(local_fleet.bootstrap(name)) for name in ("orders", "payments", "telemetry")}
    exit_code, checks_by_cluster = validate_connections(local_fleet.fleet_file)
    assert exit_code == 0
    assert checks_by_cluster.keys() == before.keys()
    for checks in checks_by_cluster.values():
        assert checks.keys() == CHECK_NAMES
        assert all(check["ok"] is True and check["mend"] is None for check in checks.values())
        assert checks["rights"]["found"] == "no authorizer: every client may do everything"
        assert checks["clock"]["found"].endswith(" ms")
        assert checks["version"]["found"] == "4.3"
    assert checks_by_cluster["orders"]["brokers"]["found"] == "1 (z1), 2 (z2), 3 (z3)"
    assert {name: list_topics(local_fleet.bootstrap(name)) for name in before} == before


def test_a_closed_port_is_reported_next_to_a_healthy_cluster(local_fleet: LocalFleet, tmp_path: Path) -> None:
    config = write_fleet_file(
        tmp_path, local_fleet.bootstrap("telemetry"), good=local_fleet.bootstrap("orders"), bad="127.0.0.1:1"
    )
    exit_code, checks_by_cluster = validate_connections(config)
    assert exit_code == 1
    assert checks_by_cluster["bad"]["reachable"]["found"] == "127.0.0.1:1: connection refused"
    assert all(check["ok"] for check in checks_by_cluster["good"].values())


def test_a_broker_that_drops_all_traffic_is_reported_and_the_rest_of_its_cluster_is_described(
    breakable_fleet: LocalFleet,
) -> None:
    breakable_fleet.fault("blackhole", "orders", 2)
    exit_code, checks_by_cluster = validate_connections(breakable_fleet.fleet_file)
    orders = checks_by_cluster["orders"]
    assert exit_code == 1
    assert "takes connections, but does not answer" in orders["reachable"]["found"]
    assert (orders["brokers"]["ok"], orders["brokers"]["mend"]) == (
        False,
        "restart broker 2 if the process hangs",
    )
    assert orders["version"]["ok"]
    assert all(check["ok"] for check in checks_by_cluster["payments"].values())


def test_a_cluster_that_drops_all_traffic_is_reported_within_the_time_limit(
    breakable_fleet: LocalFleet,
) -> None:
    for broker in (1, 2, 3):
        breakable_fleet.fault("blackhole", "payments", broker)
    exit_code, checks_by_cluster = validate_connections(breakable_fleet.fleet_file)
    assert exit_code == 1
    assert checks_by_cluster["payments"].keys() == {"reachable"}
    assert checks_by_cluster["payments"]["reachable"]["found"].count("does not answer") == 3


def test_a_broker_that_advertises_an_unreachable_address_is_reported(
    breakable_fleet: LocalFleet, tmp_path: Path
) -> None:
    plan = read_json(FleetFolder(breakable_fleet.fleet_file.parent).plan, FleetPlan)
    assert plan is not None
    (place,) = plan.layout.list_placements("telemetry")
    direct_address = f"127.0.0.1:{place.client_port}"
    breakable_fleet.fault("blackhole", "telemetry", 1)
    exit_code, checks_by_cluster = validate_connections(
        write_fleet_file(tmp_path, direct_address, orders=breakable_fleet.bootstrap("orders"))
    )
    telemetry = checks_by_cluster["telemetry"]
    assert exit_code == 1
    assert telemetry["reachable"]["ok"]
    assert telemetry["brokers"]["ok"] is False
    assert f"1 advertises {place.address}" in telemetry["brokers"]["found"]
    assert {telemetry[name]["ok"] for name in ("version", "rights", "clock", "topics")} == {None}


def test_an_existing_topic_with_other_settings_is_reported(
    breakable_fleet: LocalFleet, tmp_path: Path
) -> None:
    orders = breakable_fleet.bootstrap("orders")
    name = "existing-topic"
    document = {
        "telemetry": {
            "bootstrap": orders,
            "topics": {"probe_pulse": {"name": name, "partitions": 1, "retention_hours": 2}},
        },
        "clusters": [{"id": "payments", "bootstrap": breakable_fleet.bootstrap("payments")}],
    }
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    admin = AdminClient({"bootstrap.servers": orders})
    compacted = NewTopic(name, 1, 1, config={"cleanup.policy": "compact", "retention.ms": "5"})
    admin.create_topics([compacted])[name].result(10)
    try:
        exit_code, checks_by_cluster = validate_connections(config)
    finally:
        admin.delete_topics([name])[name].result(10)
    assert exit_code == 1
    topics_text = checks_by_cluster["telemetry"]["topics"]["found"]
    assert "retention.ms=5 instead of 7200000" in topics_text
    assert "replication factor 1 instead of 3" in topics_text


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with an authorizer that allows operations without ACLs to anonymous clients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            properties._BEHAVIOR,
            "authorizer.class.name",
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        )
        patch.setitem(properties._BEHAVIOR, "allow.everyone.if.no.acl.found", "true")
        clusters = (ClusterSpec("secured", brokers=1),)
        with LocalFleet(tmp_path_factory.mktemp("secured"), clusters) as fleet:
            yield fleet.bootstrap("secured")


def test_on_a_secured_cluster_allowed_and_missing_operations_are_reported(
    secured: str, tmp_path: Path
) -> None:
    config = write_fleet_file(tmp_path, secured, secured=secured)
    exit_code, checks_by_cluster = validate_connections(config)
    assert exit_code == 0
    assert checks_by_cluster["secured"]["rights"]["found"] == (
        "authorized to list partition reassignments, elect leaders and reassign partitions, create, "
        "describe, write, read, add partitions, read settings, change settings"
    )
    allowed = (
        AclOperation.READ,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    )
    for operation in allowed:
        add_acl(secured, "fleetgauge.probe", operation)
    add_acl(secured, "fleetgauge.probe-pulse", AclOperation.DESCRIBE, DENY)
    exit_code, checks_by_cluster = validate_connections(config)
    assert exit_code == 1
    assert checks_by_cluster["secured"]["rights"]["found"] == "not authorized to write (fleetgauge.probe)"
    assert "--operation Write --topic fleetgauge.probe" in checks_by_cluster["secured"]["rights"]["mend"]
    assert "describe (fleetgauge.probe-pulse)" in checks_by_cluster["telemetry"]["rights"]["found"]
    assert (
        "not visible to this client: fleetgauge.probe-pulse"
        in checks_by_cluster["telemetry"]["topics"]["found"]
    )
