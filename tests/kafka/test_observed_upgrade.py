"""A broker that comes back with a newer Kafka, and what is near to it: one that comes back with the same."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fleetgauge_core.kafka import TopicSpec
from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.kafka.older_kafka import OLDER_KAFKA_LOCK, older_brokers, restart_with
from tests.observed import now, observing

CLUSTER = "upgraded"
CLUSTERS = (ClusterSpec(CLUSTER), ClusterSpec("telemetry", brokers=1))
WITHIN = timedelta(seconds=30)
OF_A_RESTART = {
    "broker_restarted",
    "broker_fenced",
    "broker_unfenced",
    "leadership_moved",
    "controller_moved",
}


@pytest.mark.thorough
def test_an_upgrade_is_found_with_both_versions_and_a_restart_is_none(tmp_path: Path) -> None:
    with (
        older_brokers(),
        LocalFleet(tmp_path / "fleet", CLUSTERS) as local,
        observing(local, tmp_path / "observer", CLUSTER) as observed,
    ):
        began = now()
        observed.admin.create_topic(TopicSpec("orders", assignment=[[1, 2], [2, 3], [3, 1]]))
        observed.expect(began, kind="topic_created", topic="orders")
        upgrade = ("broker_version", 2, {"version": "4.1"}, {"version": "4.3"})
        for lock, expected in ((OLDER_KAFKA_LOCK, []), (KAFKA_LOCK, [upgrade]), (KAFKA_LOCK, [])):
            began = now()
            restart_with(local, CLUSTER, 2, lock)
            ready_at = now()
            observed.expect(began, kind="broker_restarted", broker=2)
            observed.wait_for_look()
            changes = [row for row in observed.since(began) if row["kind"] not in OF_A_RESTART]
            assert [
                (row["kind"], row["broker"], row["before"], row["after"]) for row in changes
            ] == expected, lock
            assert all(datetime.fromisoformat(row["at"]) - ready_at < WITHIN for row in changes)
