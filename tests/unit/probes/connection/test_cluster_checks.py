import socket
import time
from datetime import UTC, datetime

import pytest

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import BrokerRegistry, ClusterInspection, ConnectionFailure, EndpointResponse
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent.topic_plan import HomeBroker, TopicCreation, plan_probe_topic
from fleetgauge_probes.connection.cluster_checks import (
    check_connections,
    evaluate_inspection,
    specify_probe_topic,
    specify_record_topics,
)
from fleetgauge_probes.connection.permissions import PROBING

#: Broker 4 is fenced.
REGISTRY = BrokerRegistry(
    "uuid",
    {
        broker_id: BrokerRegistration(broker_id, "kafka", 9092, f"z{broker_id}", broker_id == 4)
        for broker_id in (1, 2, 3, 4)
    },
)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
CHECK_NAMES = ["reachable", "brokers", "version", "rights", "clock", "topics"]


def test_if_no_bootstrap_address_responds_there_is_one_check() -> None:
    inspection = ClusterInspection({"a:1": ConnectionFailure.CONNECTION_REFUSED})
    checks = evaluate_inspection(inspection, PROBING, NOW)
    assert [check.check for check in checks] == ["reachable"]


def test_unreadable_credentials_are_the_only_check() -> None:
    inspection = ClusterInspection(
        {"a:1": ConnectionFailure.CONNECTION_TIMED_OUT}, credentials_error="a:1: the variable X is not set"
    )
    (check,) = evaluate_inspection(inspection, PROBING, NOW)
    assert (check.check, check.ok, check.found) == ("security", False, "a:1: the variable X is not set")


def test_if_one_bootstrap_address_responds_there_is_every_check() -> None:
    inspection = ClusterInspection(
        {"a:1": EndpointResponse((4, 3)), "b:1": ConnectionFailure.CONNECTION_REFUSED}
    )
    checks = evaluate_inspection(inspection, PROBING, NOW)
    assert [check.check for check in checks] == CHECK_NAMES


def test_a_cluster_that_stops_responding_fails_one_check_and_leaves_the_others_unknown() -> None:
    inspection = ClusterInspection({"a:1": EndpointResponse((4, 3))})
    results = {check.check: check.ok for check in evaluate_inspection(inspection, PROBING, NOW)}
    assert results == dict.fromkeys(CHECK_NAMES) | {"reachable": True, "brokers": False}


def test_the_checked_probe_topic_is_what_the_agent_would_create() -> None:
    (spec,) = specify_probe_topic(REGISTRY, frozenset({4}))
    homes = [HomeBroker(broker_id, f"z{broker_id}") for broker_id in (1, 2, 3)]
    (creation,) = plan_probe_topic(homes, frozenset(), None)
    assert isinstance(creation, TopicCreation)
    assert (spec.name, spec.settings, spec.assignment) == (
        "fleetgauge.probe",
        creation.settings,
        creation.replicas,
    )


def test_without_registered_brokers_there_is_no_probe_topic_to_create() -> None:
    assert specify_probe_topic(BrokerRegistry("uuid", {}), frozenset()) == []


def test_record_topics_have_as_many_replicas_as_registered_brokers_permit() -> None:
    telemetry = Telemetry(bootstrap="t:1")
    assert {spec.replication_factor for spec in specify_record_topics(REGISTRY, telemetry)} == {3}
    mostly_fenced = BrokerRegistry("uuid", {broker_id: REGISTRY.brokers[broker_id] for broker_id in (1, 4)})
    assert {spec.replication_factor for spec in specify_record_topics(mostly_fenced, telemetry)} == {2}


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_clusters_are_checked_concurrently_and_reported_in_the_order_of_the_file(closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        clusters = [{"id": f"silent-{number}", "bootstrap": f"127.0.0.1:{port}"} for number in range(10)]
        clusters.append({"id": "closed", "bootstrap": f"127.0.0.1:{closed_port}"})
        progress: list[int] = []
        started = time.monotonic()
        results = check_connections(Fleet.model_validate({"clusters": clusters}), progress.append, NOW)
    assert time.monotonic() - started < 8
    expected = [*(f"silent-{number}" for number in range(10)), "closed", "telemetry"]
    assert [result.cluster for result in results] == expected
    assert progress == [11]


def test_a_fleet_without_a_telemetry_cluster_fails_a_check(closed_port: int) -> None:
    clusters = [{"id": "a", "bootstrap": f"127.0.0.1:{closed_port}"}]
    fleet = Fleet.model_validate({"clusters": clusters})
    *_, telemetry = check_connections(fleet, lambda _: None, NOW)
    assert (telemetry.cluster, telemetry.bootstrap, telemetry.checks[0].ok) == ("telemetry", None, False)
    assert "telemetry.bootstrap" in (telemetry.checks[0].mend or "")
