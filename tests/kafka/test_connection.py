"""`fleetgauge validate --connect` against real brokers: healthy, silent, badly advertised, secured."""

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
from fleetgauge_local.folder import Folder, Plan, read
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.connection.validate import validate
from tests.kafka.acls import DENY, rule

KINDS = {"reachable", "brokers", "version", "rights", "clock", "topics"}
#: What a look may take, and starting the command on a busy machine.
BOUND_S = 20

Checks = dict[str, dict[str, Any]]


def connect(config: Path) -> tuple[int, dict[str, Checks]]:
    """The exit code, and per cluster what each check found."""
    started = time.monotonic()
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    assert time.monotonic() - started < BOUND_S
    answer = json.loads(result.stdout)
    found = {one["cluster"]: {check["check"]: check for check in one["checks"]} for one in answer["clusters"]}
    return result.exit_code, found


def fleet_file(folder: Path, telemetry: str, **clusters: str) -> Path:
    document = {
        "telemetry": {"bootstrap": telemetry},
        "clusters": [{"id": name, "bootstrap": bootstrap} for name, bootstrap in clusters.items()],
    }
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def test_a_healthy_fleet_has_nothing_to_mend_and_is_left_as_it_is(local_fleet: LocalFleet) -> None:
    before = {name: topics(local_fleet.bootstrap(name)) for name in ("orders", "payments", "telemetry")}
    code, found = connect(local_fleet.fleet_file)
    assert code == 0
    assert found.keys() == before.keys()
    for checks in found.values():
        assert checks.keys() == KINDS
        assert all(check["ok"] is True and check["mend"] is None for check in checks.values())
        assert checks["rights"]["found"] == "no authorizer: everybody may do everything"
        assert checks["clock"]["found"].endswith(" ms")
        assert checks["version"]["found"] == "4.3"
    assert found["orders"]["brokers"]["found"] == "1 (z1), 2 (z2), 3 (z3)"
    assert {name: topics(local_fleet.bootstrap(name)) for name in before} == before


def test_a_port_where_nobody_listens_is_found_beside_a_cluster_that_is_well(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    config = fleet_file(
        tmp_path, local_fleet.bootstrap("telemetry"), good=local_fleet.bootstrap("orders"), bad="127.0.0.1:1"
    )
    code, found = connect(config)
    assert code == 1
    assert found["bad"]["reachable"]["found"] == "127.0.0.1:1: connection refused"
    assert all(check["ok"] for check in found["good"].values())


def test_a_black_hole_is_found_in_time_and_the_rest_of_the_cluster_is_described(
    breakable_fleet: LocalFleet,
) -> None:
    breakable_fleet.fault("blackhole", "orders", 2)
    code, found = connect(breakable_fleet.fleet_file)
    orders = found["orders"]
    assert code == 1
    assert "takes connections, but does not answer" in orders["reachable"]["found"]
    assert (orders["brokers"]["ok"], orders["brokers"]["mend"]) == (False, "broker 2 may hang")
    assert orders["version"]["ok"]
    assert all(check["ok"] for check in found["payments"].values())


def test_a_cluster_in_a_black_hole_is_found_in_time(breakable_fleet: LocalFleet) -> None:
    for broker in (1, 2, 3):
        breakable_fleet.fault("blackhole", "payments", broker)
    code, found = connect(breakable_fleet.fleet_file)
    assert code == 1
    assert found["payments"].keys() == {"reachable"}
    assert found["payments"]["reachable"]["found"].count("does not answer") == 3


def test_a_broker_that_answers_but_advertises_a_dead_end_is_named(
    breakable_fleet: LocalFleet, tmp_path: Path
) -> None:
    plan = read(Folder(breakable_fleet.fleet_file.parent).plan, Plan)
    assert plan is not None
    (place,) = plan.layout.of("telemetry")
    behind_the_proxy = f"127.0.0.1:{place.client_port}"
    breakable_fleet.fault("blackhole", "telemetry", 1)
    code, found = connect(fleet_file(tmp_path, behind_the_proxy, orders=breakable_fleet.bootstrap("orders")))
    telemetry = found["telemetry"]
    assert code == 1
    assert telemetry["reachable"]["ok"]
    assert telemetry["brokers"]["ok"] is False
    assert f"1 advertises {place.address}" in telemetry["brokers"]["found"]
    assert {telemetry[name]["ok"] for name in ("version", "rights", "clock", "topics")} == {None}


def test_a_topic_of_our_name_that_is_not_like_ours_is_found(
    breakable_fleet: LocalFleet, tmp_path: Path
) -> None:
    orders = breakable_fleet.bootstrap("orders")
    name = "records-of-somebody-else"
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
        code, found = connect(config)
    finally:
        admin.delete_topics([name])[name].result(10)
    assert code == 1
    told = found["telemetry"]["topics"]["found"]
    assert "retention.ms=5 instead of 7200000" in told
    assert "replication factor 1 instead of 3" in told


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One broker with an authorizer, where anonymous clients may do what no rule names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            properties._BEHAVIOUR,
            "authorizer.class.name",
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        )
        patch.setitem(properties._BEHAVIOUR, "allow.everyone.if.no.acl.found", "true")
        lone = (ClusterSpec("secured", brokers=1),)
        with LocalFleet(tmp_path_factory.mktemp("secured"), lone) as fleet:
            yield fleet.bootstrap("secured")


def test_on_a_secured_cluster_what_may_and_may_not_be_done_is_told(secured: str, tmp_path: Path) -> None:
    config = fleet_file(tmp_path, secured, secured=secured)
    code, found = connect(config)
    assert code == 0
    assert found["secured"]["rights"]["found"] == (
        "may see replicas being moved, elect leaders and move replicas, create, describe, write, read, "
        "add partitions, read settings, change settings"
    )
    given = (AclOperation.READ, AclOperation.ALTER, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    for operation in given:
        rule(secured, "fleetgauge.probe", operation)
    rule(secured, "fleetgauge.probe-pulse", AclOperation.DESCRIBE, DENY)
    code, found = connect(config)
    assert code == 1
    assert found["secured"]["rights"]["found"] == "may not write (fleetgauge.probe)"
    assert "--operation Write --topic fleetgauge.probe" in found["secured"]["rights"]["mend"]
    assert "describe (fleetgauge.probe-pulse)" in found["telemetry"]["rights"]["found"]
    assert "hidden from us: fleetgauge.probe-pulse" in found["telemetry"]["topics"]["found"]
