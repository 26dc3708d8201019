import socket
import time
from datetime import UTC, datetime

import pytest

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import (
    Look,
    Registration,
    Registry,
    Reply,
    Silence,
)
from fleetgauge_probes.agent.topic_plan import Create, Home, plan
from fleetgauge_probes.connection import try_connections
from fleetgauge_probes.connection.connection_test import judge, probe_topic, record_topics
from fleetgauge_probes.connection.permissions import PROBING

REGISTRY = Registry("uuid", {b: Registration(b, "kafka", 9092, f"z{b}", b == 4) for b in (1, 2, 3, 4)})
NOW = datetime(2026, 6, 1, tzinfo=UTC)
KINDS = ["reachable", "brokers", "version", "rights", "clock", "topics"]


def test_where_nobody_answers_there_is_one_check() -> None:
    look = Look({"a:1": Silence.REFUSED})
    assert [one.check for one in judge(look, PROBING, NOW)] == ["reachable"]


def test_what_cannot_be_tried_says_why_and_nothing_else() -> None:
    (one,) = judge(Look({"a:1": Silence.TIMED_OUT}, unusable="a:1: the variable X is not set"), PROBING, NOW)
    assert (one.check, one.ok, one.found) == ("security", False, "a:1: the variable X is not set")


def test_where_somebody_answers_there_is_every_check() -> None:
    look = Look({"a:1": Reply((4, 3)), "b:1": Silence.REFUSED})
    assert [one.check for one in judge(look, PROBING, NOW)] == KINDS


def test_what_falls_silent_after_the_first_answer_is_a_finding_and_the_rest_is_not_known() -> None:
    ok = {one.check: one.ok for one in judge(Look({"a:1": Reply((4, 3))}), PROBING, NOW)}
    assert ok == dict.fromkeys(KINDS) | {"reachable": True, "brokers": False}


def test_the_probe_topic_that_is_tried_is_the_one_that_the_agent_would_make() -> None:
    (spec,) = probe_topic(REGISTRY, frozenset({4}))
    (change,) = plan([Home(b, f"z{b}") for b in (1, 2, 3)], frozenset(), None)
    assert isinstance(change, Create)
    assert (spec.name, spec.settings, spec.assignment) == (
        "fleetgauge.probe",
        change.settings,
        change.replicas,
    )


def test_without_a_broker_there_is_no_probe_topic_to_make() -> None:
    assert probe_topic(Registry("uuid", {}), frozenset()) == []


def test_record_topics_have_as_many_replicas_as_live_brokers_allow() -> None:
    telemetry = Telemetry(bootstrap="t:1")
    assert {spec.replication_factor for spec in record_topics(REGISTRY, telemetry)} == {3}
    fenced = Registry("uuid", {b: REGISTRY.brokers[b] for b in (1, 4)})
    assert {spec.replication_factor for spec in record_topics(fenced, telemetry)} == {1}


@pytest.fixture
def dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_clusters_are_tried_at_once_and_told_in_the_order_of_the_file(dead_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        clusters = [{"id": f"mute-{n}", "bootstrap": f"127.0.0.1:{mute.getsockname()[1]}"} for n in range(10)]
        clusters.append({"id": "dead", "bootstrap": f"127.0.0.1:{dead_port}"})
        done: list[int] = []
        started = time.monotonic()
        found = try_connections(Fleet.model_validate({"clusters": clusters}), done.append, NOW)
    assert time.monotonic() - started < 8
    assert [one.cluster for one in found] == [*(f"mute-{n}" for n in range(10)), "dead", "telemetry"]
    assert done == [11]


def test_a_file_without_a_telemetry_cluster_lacks_something(dead_port: int) -> None:
    clusters = [{"id": "a", "bootstrap": f"127.0.0.1:{dead_port}"}]
    *_, last = try_connections(Fleet.model_validate({"clusters": clusters}), lambda _: None, NOW)
    assert (last.cluster, last.bootstrap, last.checks[0].ok) == ("telemetry", None, False)
    assert "telemetry.bootstrap" in (last.checks[0].mend or "")
