"""Processes beside the agent with exactly the ACLs that `probe acls --for` prints, or one of them less."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
import yaml
from confluent_kafka.admin import AclOperation

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Fleet, Telemetry, load_fleet
from fleetgauge_core.kafka import (
    ClusterAdmin,
    CommittedOffset,
    ConsumerGroups,
    LeaderElection,
    LeadershipStatus,
    RecordProducer,
    TopicOffsets,
    TopicSpec,
    ensure_state_topic,
    ensure_telemetry_topics,
    read_cluster_metadata,
)
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.actions.leadership import hold_cluster_leadership
from fleetgauge_operations.actions.observer import read_findings
from fleetgauge_operations.mitigation.cluster_control import KafkaClusterControl
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder
from fleetgauge_operations.recovery.tracers.tracer_loop import TracerLoop
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.watched_fleet import WatchedFleet
from tests.kafka.acls import AclRight, remove_all_rights
from tests.kafka.strict import (
    CLIENT,
    find_broker_listener,
    grant,
    grant_only,
    print_rights,
    revoke,
)
from tests.observed import now, observing
from tests.probe_minutes import CLIENT as CLIENT_MINUTE
from tests.topic_values import read_values
from tests.unit.core.detection.pulses import broker, hung, pulse
from tests.waiting import wait_until

DEADLINE_S = 60
CLUSTERS = ("strict", "telemetry")


@dataclass
class Watch:
    """A running watch, and an agent that reports as a super user."""

    fleet: Fleet
    telemetry: Telemetry
    agent: RecordProducer
    findings: list[Finding] = field(default_factory=list)
    health: ProcessHealth = field(default_factory=lambda: ProcessHealth("watch", 60))

    hung_id: int = 1
    """The broker that hangs; it is another one in each round, as a broker that flaps is not cleared soon."""

    def report(self) -> None:
        """Send a pulse of brokers of which one hangs."""
        brokers = (broker(number) if number != self.hung_id else hung(9, number) for number in range(1, 99))
        sent = replace(pulse(0, *brokers, cluster="strict"), emitted_at=datetime.now(UTC))
        self.agent.send(self.telemetry.topics.probe_pulse.name, sent.cluster_id, sent.encode())

    def find_next_broker(self) -> None:
        """Report that another broker hangs, until the watch has found it."""
        self.hung_id += 1

        def is_found() -> bool:
            self.report()
            return any(
                finding.is_alert and finding.event.broker_id == self.hung_id for finding in self.findings
            )

        wait_until(is_found, DEADLINE_S, f"a finding about broker {self.hung_id}", every_s=1)


@contextmanager
def run_watch(strict: LocalFleet) -> Iterator[Watch]:
    fleet = load_fleet(strict.fleet_file)
    assert fleet.telemetry is not None
    super_user = fleet.telemetry.model_copy(update={"bootstrap": find_broker_listener(strict, "telemetry")})
    agent = RecordProducer(super_user.access, "agent")
    agent.start()
    watch, shutdown = Watch(fleet, super_user, agent), ShutdownFlag()
    watched = WatchedFleet(strict.fleet_file, watch.health.parts, time.monotonic)
    watched.load()
    controller = WatchController(
        watched,
        fleet.telemetry,
        lambda: datetime.now(UTC),
        watch.findings.append,
        watch.health,
        WatchMetrics(watch.health.registry),
    )
    thread = Thread(target=controller.run, args=(shutdown,))
    thread.start()
    try:
        wait_until(lambda: watch.health.is_ready, DEADLINE_S, "the watch")
        yield watch
        assert thread.is_alive()
    finally:
        shutdown.set()
        thread.join(DEADLINE_S)
        agent.stop()
    assert not thread.is_alive()


def denied(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines about a missing permission."""
    words = ("AUTHORIZATION", "uthorization failed", "permission", "may not")
    return [
        record.getMessage() for record in caplog.records if any(word in record.getMessage() for word in words)
    ]


def test_a_watch_with_the_printed_permissions_creates_its_topics_and_finds(
    strict: LocalFleet, caplog: pytest.LogCaptureFixture
) -> None:
    grant_only(strict, "watch", CLUSTERS)
    with run_watch(strict) as watch:
        for _ in range(2):
            watch.find_next_broker()
        events = watch.telemetry.topics.health_events.name
        wait_until(
            lambda: len(read_values(watch.telemetry.access, events)) == len(watch.findings),
            DEADLINE_S,
            "stored findings",
        )
    assert denied(caplog) == []


@pytest.mark.thorough
def test_a_watch_survives_the_loss_of_each_permission_and_says_which(
    strict: LocalFleet, caplog: pytest.LogCaptureFixture
) -> None:
    rights = grant_only(strict, "watch", CLUSTERS)
    with run_watch(strict) as watch:
        watch.find_next_broker()
        for cluster, right in rights:
            caplog.clear()
            revoke(strict, cluster, right)
            # Topics exist already, and a running watch only writes to its state topic.
            is_in_use = right.topic != watch.telemetry.topics.watch_state.name
            if right.operation is not AclOperation.CREATE and is_in_use:
                wait_until_denied(watch, caplog, right)
            grant(strict, cluster, right)
            watch.find_next_broker()


def wait_until_denied(watch: Watch, caplog: pytest.LogCaptureFixture, right: AclRight) -> None:
    """Report to the watch until it says that it lacks a permission."""

    def has_said_so() -> bool:
        watch.hung_id += 1
        watch.report()
        return bool(denied(caplog))

    wait_until(has_said_so, DEADLINE_S, f"a line about {right}", every_s=1)


def create_super_admin(strict: LocalFleet) -> ClusterAdmin:
    access = load_fleet(strict.fleet_file).cluster("strict").access
    admin = ClusterAdmin(replace(access, bootstrap=find_broker_listener(strict, "strict")))
    admin.start()
    return admin


def test_an_observer_with_the_printed_permissions_reads_all_parts(strict: LocalFleet, tmp_path: Path) -> None:
    grant_only(strict, "observe", CLUSTERS)
    admin = create_super_admin(strict)
    with observing(strict, tmp_path, "strict") as observed:
        began = now()
        admin.create_topic(TopicSpec("seen", {"retention.ms": "60000"}, 1, 1))
        observed.expect(began, kind="topic_created", topic="seen")
        assert "cannot be read" not in observed.log.read_text()


@pytest.mark.thorough
def test_an_observer_says_once_what_it_may_not_read_and_takes_nothing_for_changed(
    strict: LocalFleet, tmp_path: Path
) -> None:
    rights = grant_only(strict, "observe", CLUSTERS)
    admin = create_super_admin(strict)
    admin.create_topic(TopicSpec("hidden", {"retention.ms": "60000"}, 1, 1))
    with observing(strict, tmp_path, "strict") as observed:
        for cluster, right in rights:
            if cluster != "strict":
                continue
            began, logged = now(), len(observed.log.read_text())
            revoke(strict, cluster, right)
            observed.wait_for_look(3)
            lines = [
                line.partition("cluster strict: ")[2]
                for line in observed.log.read_text()[logged:].splitlines()
                if "cannot be read" in line
            ]
            grant(strict, cluster, right)
            observed.wait_for_look(2)
            assert len(lines) == len(set(lines)) > 0, (right, lines)
            # That the permission itself changes is seen, unless it was the one to see it by.
            assert {row["kind"] for row in observed.since(began)} <= {"acls_changed"}, right


def test_a_mitigation_with_the_printed_permissions_observes_leads_and_changes(strict: LocalFleet) -> None:
    fleet, partition = load_fleet(strict.fleet_file), TopicPartition("orders", 0)
    cluster, telemetry = fleet.cluster("strict"), fleet.telemetry
    assert telemetry is not None
    super_telemetry = telemetry.model_copy(update={"bootstrap": find_broker_listener(strict, "telemetry")})
    super_admin = ClusterAdmin(replace(cluster.access, bootstrap=find_broker_listener(strict, "strict")))
    super_admin.start()
    super_admin.create_topic(TopicSpec(partition.topic, assignment=((1, 2, 3),)))
    ensure_telemetry_topics(super_telemetry)
    ensure_state_topic(super_telemetry, telemetry.topics.watch_state)
    watch = LeaderElection(super_telemetry.access, telemetry.topics.watch_state.name)
    watch.start()
    grant_only(strict, "mitigate", CLUSTERS)
    try:
        assert watch.wait_for_leadership(DEADLINE_S)
        assert list(read_findings(telemetry)) is not None
        groups = ConsumerGroups(telemetry.access, "tests")
        groups.start()
        assert groups.find_groups_with_members([telemetry.topics.watch_state.name])
        groups.stop()
        control = KafkaClusterControl(cluster, telemetry, lambda: datetime.now(UTC))
        order, throttle = ReplicaOrder((1, 2, 3), (2, 3, 1)), {partition.topic: "0:1"}
        with hold_cluster_leadership(telemetry, cluster.id) as leadership:
            assert leadership.confirm() is LeadershipStatus.HELD
            control.set_demotion_mark(1, demoted=True)
            control.reorder_replicas({partition: order.after}, {partition: order})
            control.elect_preferred_leaders([partition])
            control.throttle_replication(1, throttle)
            control.remove_throttle(1, throttle, registered=True)
        wait_until(
            lambda: read_cluster_metadata(cluster.access).partitions[partition].replicas == order.after,
            DEADLINE_S,
            "the new order",
        )
    finally:
        watch.stop()


def test_a_recovery_with_the_printed_permissions_reads_both_sides_and_moves_offsets(
    strict: LocalFleet, tmp_path: Path
) -> None:
    """Both regions are the same cluster here, as only what is asked of a cluster matters."""
    document = yaml.safe_load(strict.fleet_file.read_text(encoding="utf-8"))
    (entry,) = (cluster for cluster in document["clusters"] if cluster["id"] == "strict")
    document["clusters"] = [entry, entry | {"id": "other"}]
    document["recovery"] = {
        "mirrors": [
            {"source": "strict", "destination": "other", "topics": "orders|tracers", "names": "kept"}
        ],
        "groups": [{"active": "strict", "passive": "other", "groups": "billing"}],
        "tracers": {"topic": "tracers", "every_s": 1},
    }
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    fleet = load_fleet(tmp_path / "fleet.yaml")
    partition = TopicPartition("recovered", 0)
    super_access = replace(fleet.cluster("strict").access, bootstrap=find_broker_listener(strict, "strict"))
    super_admin = ClusterAdmin(super_access)
    super_admin.start()
    super_admin.create_topic(TopicSpec(partition.topic, assignment=((1, 2, 3),)))
    for cluster in CLUSTERS:
        remove_all_rights(find_broker_listener(strict, cluster), CLIENT)
    for cluster, right in print_rights(tmp_path / "fleet.yaml", "--for", "recover"):
        assert cluster in ("strict", "other")
        grant(strict, "strict", right)
    access = fleet.cluster("other").access
    offsets, groups, admin = (
        TopicOffsets(access, "tests"),
        ConsumerGroups(access, "tests"),
        ClusterAdmin(access),
    )
    for client in (offsets, groups, admin):
        client.start()
    assert partition.topic in offsets.list_topic_names()
    assert offsets.select_led_partitions([partition]) == (partition,)
    assert offsets.read_end_offsets([partition]) == {partition: 0}
    assert groups.commit_offsets("billing", {partition: CommittedOffset(0)}) == {}
    assert "billing" in groups.list_group_ids()
    assert groups.read_committed_offsets(["billing"])["billing"][partition].offset == 0
    assert admin.read_topic_setting(partition.topic, "cleanup.policy") == "delete"
    groups.stop()
    tracers = fleet.recovery.tracers
    assert tracers is not None
    loop = TracerLoop(fleet, tracers, "run", lambda: round(time.time() * 1000))
    loop.start()
    try:
        wait_until(lambda: bool(loop.take_report().acks), DEADLINE_S, "an acknowledged tracer")
    finally:
        loop.stop()


@pytest.mark.thorough
def test_a_stream_with_the_printed_permissions_reads_minutes_and_findings(
    strict: LocalFleet, tmp_path: Path
) -> None:
    telemetry = load_fleet(strict.fleet_file).telemetry
    assert telemetry is not None
    super_telemetry = telemetry.model_copy(update={"bootstrap": find_broker_listener(strict, "telemetry")})
    ensure_telemetry_topics(super_telemetry)
    agent = RecordProducer(super_telemetry.access, "agent")
    agent.start()
    # The stream takes no minute that is older than its retention.
    minute = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    record = replace(CLIENT_MINUTE, cluster_id="strict", minute=minute, emitted_at=datetime.now(UTC))
    agent.send(telemetry.topics.probe_minutes.name, record.cluster_id, record.encode())
    assert agent.stop(DEADLINE_S) == 0
    grant_only(strict, "stream", CLUSTERS)
    lake = ("--config", str(strict.fleet_file), "--lake", str(tmp_path / "lake"))
    command = [sys.executable, "-m", "fleetgauge_core", "run", *lake, "--json"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["stored"] >= 1
