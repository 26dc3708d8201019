"""Several observers of a cluster, and a telemetry cluster that goes away: every change is published once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetgauge_core.kafka import TopicSpec
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.observed import now, observing, start_observer

RATE = "leader.replication.throttled.rate"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    clusters = (ClusterSpec("lone", brokers=1), ClusterSpec("telemetry", brokers=1))
    with LocalFleet(tmp_path_factory.mktemp("takeover"), clusters) as fleet:
        yield fleet


@pytest.mark.thorough
def test_another_observer_takes_over_and_ends_what_the_first_has_begun(
    local: LocalFleet, tmp_path: Path
) -> None:
    first = start_observer(local, tmp_path / "first", "lone")
    try:
        first.wait_for_look()
        second = start_observer(local, tmp_path / "second", "lone")
        try:
            began = now()
            first.admin.set_broker_setting(1, RATE, "1000000")
            begun = first.expect(began, kind="throttle", phase="begun")
            first.process.kill()
            second.wait_for_look(2)
            began = now()
            first.admin.set_broker_setting(1, RATE, None)
            ended = first.expect(began, kind="throttle")
            assert (ended["change_id"], ended["phase"]) == (begun["change_id"], "ended")
            assert ended["starts"] == begun["starts"]
        finally:
            second.process.kill()
            second.process.wait()
    finally:
        first.process.kill()
        first.process.wait()


@pytest.mark.thorough
def test_what_is_seen_while_the_telemetry_cluster_is_down_is_published_once_it_is_back(
    local: LocalFleet, tmp_path: Path
) -> None:
    with observing(local, tmp_path, "lone") as observed:
        local.fault("kill", "telemetry", 1)
        began = now()
        observed.admin.create_topic(TopicSpec("meanwhile", {}, 1, 1))
        observed.wait_for_look(3)
        local.fault("heal", "telemetry", 1)
        local.wait_ready()
        created = observed.expect(began, kind="topic_created", topic="meanwhile")
        assert created["after"]["partitions"] == 1
        observed.wait_for_look(2)
        rows = [row for row in observed.since(began) if row["topic"] == "meanwhile"]
        assert len(rows) == 1
