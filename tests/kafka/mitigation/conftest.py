"""Brokers that all tests of mitigation share, and what a test does with them."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from fleetgauge_core.detection import HealthState
from fleetgauge_core.fleet import ClusterAccess, load_fleet
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    ClusterAdmin,
    LeaderElection,
    TopicSpec,
    ensure_state_topic,
)
from fleetgauge_core.tables import ACTIONS, CORRECTIONS
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.browser.lake import put
from tests.kafka.agents import Agent, build_fleet
from tests.kafka.mitigation.testbed import DEADLINE_S, MitigationTestbed, build_restart_command, elected
from tests.receiver import Receiver


@pytest.fixture(scope="package")
def mitigated_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A cluster for mitigation only: topics with one replica of other tests would refuse every action."""
    with LocalFleet(tmp_path_factory.mktemp("mitigated"), (ClusterSpec("mitigated"),)) as fleet:
        yield fleet


@pytest.fixture
def testbed(
    mitigated_fleet: LocalFleet, local_fleet: LocalFleet, tmp_path: Path
) -> Iterator[MitigationTestbed]:
    """Broker 2 leads a topic with three replicas, and has been DEGRADED for five minutes."""
    fleet, telemetry = build_fleet(mitigated_fleet, ["mitigated"], telemetry_fleet=local_fleet)
    document = fleet.model_dump(mode="json", exclude_defaults=True)
    document["clusters"][0]["restart"] = build_restart_command(mitigated_fleet)
    for topic in ("watch_state", "demotions"):
        document["telemetry"]["topics"][topic] = {"name": f"{topic}-{uuid.uuid4().hex[:8]}"}
    document["lake"] = str(tmp_path / "lake")
    on_call = Receiver()
    document["notifiers"] = [{"kind": "webhook", "url": on_call.url}]
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(document))
    described = load_fleet(tmp_path / "fleet.yaml")
    assert described.telemetry is not None
    for table in (ACTIONS, CORRECTIONS):
        put(tmp_path / "lake", table, [])
    agent = Agent(described, described.telemetry, tmp_path / "spool")
    ensure_state_topic(described.telemetry, described.telemetry.topics.watch_state)
    watch = LeaderElection(telemetry.access, described.telemetry.topics.watch_state.name)
    testbed = MitigationTestbed(
        tmp_path, ClusterAccess(mitigated_fleet.bootstrap("mitigated")), agent, on_call, watch
    )
    telemetry_admin = ClusterAdmin(telemetry.access)
    telemetry_admin.start()
    telemetry_admin.create_topic(
        TopicSpec(telemetry.topics.health_events.name, partitions=1, replication_factor=1)
    )
    testbed.publish_finding(2, HealthState.DEGRADED)
    testbed.create_topic((2, 3, 1), **{"min.insync.replicas": "2"})
    with on_call.listening(), elected(watch):
        yield testbed
    # A test that failed half-way must not leave its throttle to the next one.
    testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, None)
    admin = AdminClient({"bootstrap.servers": testbed.access.bootstrap})
    for deletion in admin.delete_topics(testbed.topics).values() if testbed.topics else ():
        deletion.result(DEADLINE_S)
