"""`fleetgauge mitigate` with real brokers: actions under load, their undo, and each fail-safe."""

import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from fleetgauge_core.detection import FindingSubject, HealthCondition, HealthState
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.fleet import ClusterAccess, load_fleet
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    ClusterAdmin,
    KafkaUnavailableError,
    LeaderElection,
    RecordProducer,
    TopicSpec,
    ensure_state_topic,
    read_cluster_metadata,
    reassign_topic,
    reorder_replicas,
)
from fleetgauge_core.metadata import ClusterMetadata, TopicPartition
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ACTIONS, CORRECTIONS, ActionKind, ActionOutcome
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.leadership import hold_cluster_leadership
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.cli import mitigate
from fleetgauge_operations.mitigation.context import MitigationContext, open_mitigation
from fleetgauge_operations.mitigation.controller import MitigationController
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.browser.lake import put
from tests.control_loop_scenarios import ControlLoopScenarios
from tests.kafka.agents import Agent, build_fleet, has_successful_probes, is_probed_through_other_leaders
from tests.receiver import Receiver
from tests.unit.operations.watch.sample_findings import maintenance_row
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
PARTITIONS = 12
DEADLINE_S = 60
APPLY = ("apply", "--cluster", "mitigated", "--broker", "2")
QUARANTINE = (*APPLY, "--action", "quarantine_restart")


@pytest.fixture(scope="module")
def mitigated_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A cluster for these tests only: topics with one replica of other tests would refuse every action."""
    with LocalFleet(tmp_path_factory.mktemp("mitigated"), (ClusterSpec("mitigated"),)) as fleet:
        yield fleet


@dataclass(frozen=True)
class MitigationTestbed:
    """A fleet file with its own lake, what an operator and a watch do with it, and the notified receiver."""

    folder: Path
    access: ClusterAccess
    agent: Agent
    on_call: Receiver
    watch: LeaderElection
    """The election of a running watch."""
    topics: list[str] = field(default_factory=list)

    def run_command(self, *arguments: str, exit_code: int = 0) -> Any:
        command, *rest = arguments
        result: Result = CliRunner().invoke(
            mitigate, [command, *rest, "--config", str(self.folder / "fleet.yaml"), "--json"]
        )
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout)

    def read_refusals(self, broker: int = 2, *more: str) -> list[str]:
        """Return the fail-safes that refuse an action in a dry run.

        Executing it is refused for the same reasons, and the on-call person is notified.
        """
        apply = ("apply", "--cluster", "mitigated", "--broker", str(broker), *more)
        refusals = self.run_command(*apply, exit_code=1)["refusals"]
        case = self.run_command(*apply, "--execute", exit_code=1)
        words = [_without_ages(refusal["words"]) for refusal in refusals]
        assert (case["outcome"], case["told"]) == ("refused", ["127.0.0.1"])
        notification = self.on_call.bodies[-1]
        assert (notification["kind"], notification["broker"], notification["words"]) == (
            "MITIGATION_REFUSED",
            broker,
            case["words"],
        )
        assert [_without_ages(text) for text in notification["words"]] == words
        assert all(words)
        return [refusal["why"] for refusal in refusals]

    def publish_finding(self, broker: int, state: HealthState, minutes_ago: float = 5) -> None:
        """Publish a finding as a watch does."""
        before, after = (
            (HealthState.HEALTHY, state) if state.is_alert else (HealthState.DEGRADED, HealthState.HEALTHY)
        )
        at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        condition = state.condition if state.is_alert else HealthCondition.DEGRADED
        event = build_finding(FindingSubject("mitigated", condition, broker), before, after, at, {}).event
        producer = RecordProducer(self.agent.telemetry.access, "watch")
        producer.start()
        producer.send(self.agent.telemetry.topics.health_events.name, "mitigated", event.encode())
        producer.stop()

    def update_fleet_file(self, **keys: Any) -> None:
        """Set keys of the cluster in the fleet file."""
        config = self.folder / "fleet.yaml"
        document = yaml.safe_load(config.read_text())
        document["clusters"][0] |= keys
        config.write_text(yaml.safe_dump(document))

    @contextmanager
    def running_controller(self, limits: MitigationLimits) -> Iterator[None]:
        """Run `mitigate run` until the block is left."""
        context = open_mitigation(self.folder / "fleet.yaml", None)
        controller = MitigationController(
            context,
            context.create_control_loops(limits),
            context.create_case_notifier(),
            ProcessHealth("mitigate", 900),
            lambda _: None,
            context.clock,
        )
        shutdown = ShutdownFlag()
        thread = threading.Thread(target=controller.run, args=(shutdown,))
        thread.start()
        try:
            yield
        finally:
            shutdown.set()
            thread.join(2 * DEADLINE_S)

    def wait_for_notification(self, kind: str) -> None:
        def is_notified() -> bool:
            return kind in [body["kind"] for body in self.on_call.bodies]

        wait_until(is_notified, DEADLINE_S, f"the notification {kind}")

    def create_topic(self, *replicas: Sequence[int], **settings: str) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        self.admin.create_topic(TopicSpec(name, settings, assignment=replicas))
        self.topics.append(name)
        wait_until(lambda: len(self.read_replicas(name)) == len(replicas), DEADLINE_S, "the topic")
        return name

    def read_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return the topic's replicas by partition number."""
        return {
            partition.partition: metadata.replicas
            for partition, metadata in self.metadata().partitions.items()
            if partition.topic == topic
        }

    def metadata(self) -> ClusterMetadata:
        return read_cluster_metadata(self.access)

    @property
    def admin(self) -> ClusterAdmin:
        admin = ClusterAdmin(self.access)
        admin.start()
        return admin

    @property
    def audit_log(self) -> AuditLog:
        return AuditLog(str(self.folder / "lake"))


@pytest.fixture
def testbed(
    mitigated_fleet: LocalFleet, local_fleet: LocalFleet, tmp_path: Path
) -> Iterator[MitigationTestbed]:
    """Broker 2 leads a topic with three replicas, and has been DEGRADED for five minutes."""
    fleet, telemetry = build_fleet(mitigated_fleet, ["mitigated"], telemetry_fleet=local_fleet)
    document = fleet.model_dump(mode="json", exclude_defaults=True)
    document["clusters"][0]["restart"] = _build_restart_command(mitigated_fleet)
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
    with on_call.listening(), _elected(watch):
        yield testbed
    admin = AdminClient({"bootstrap.servers": testbed.access.bootstrap})
    for deletion in admin.delete_topics(testbed.topics).values() if testbed.topics else ():
        deletion.result(DEADLINE_S)


@contextmanager
def _elected(election: LeaderElection) -> Iterator[None]:
    election.start()
    try:
        assert election.wait_for_leadership(DEADLINE_S)
        yield
    finally:
        election.stop()


def _without_ages(words: str) -> str:
    """Replace ages in seconds, which differ between two runs of a command."""
    return re.sub(r"\d+ s\b", "some s", words)


def _build_restart_command(mitigated_fleet: LocalFleet) -> list[str]:
    """Return a restart command that kills and starts a broker."""
    script = (
        "import sys; from pathlib import Path; from fleetgauge_local.fleet import LocalFleet; "
        "fleet = LocalFleet(Path(sys.argv[1])); broker = int(sys.argv[2]); "
        "fleet.fault('kill', 'mitigated', broker); fleet.fault('heal', 'mitigated', broker)"
    )
    return [sys.executable, "-c", script, str(mitigated_fleet.status().directory), "{broker}"]


@dataclass
class Load:
    """An idempotent producer with acks=all and a consumer that run all the time."""

    bootstrap: str
    topic: str
    size: int = 100
    acknowledged: int = 0
    received: int = 0
    errors: list[str] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Run until the block is left, then until every acknowledged record is consumed."""
        with _thread(self._consume), _thread(self._produce):
            wait_until(lambda: self.received > 0, DEADLINE_S, "the load")
            yield self

    def _produce(self, shutdown: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0})

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                self.errors.append(error.str())
            else:
                self.acknowledged += 1

        number = 0
        while not shutdown.wait(0.005):
            producer.produce(
                self.topic, bytes(self.size), partition=number % PARTITIONS, on_delivery=delivered
            )
            producer.poll(0)
            number += 1
        assert producer.flush(DEADLINE_S) == 0

    def _consume(self, shutdown: threading.Event) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self.topic])
        deadline_s = float("inf")
        while time.monotonic() < deadline_s and not (
            shutdown.is_set() and self.received >= self.acknowledged
        ):
            message = consumer.poll(1)
            if shutdown.is_set():
                deadline_s = min(deadline_s, time.monotonic() + DEADLINE_S)
            if message is None:
                continue
            if error := message.error():
                self.errors.append(error.str())
            else:
                self.received += 1
        consumer.close()


@contextmanager
def _thread(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a thread; ask it to stop when the block is left, and wait for it."""
    shutdown = threading.Event()
    thread = threading.Thread(target=run, args=(shutdown,))
    thread.start()
    try:
        yield
    finally:
        shutdown.set()
        thread.join(2 * DEADLINE_S)


def test_a_demotion_under_load_is_undone_except_for_partitions_changed_by_an_operator(
    testbed: MitigationTestbed,
) -> None:
    rotated = [BROKERS[shift % 3 :] + BROKERS[: shift % 3] for shift in range(PARTITIONS)]
    topic = testbed.create_topic(*rotated, **{"min.insync.replicas": "2"})
    with testbed.agent.running(), Load(testbed.access.bootstrap, topic).running() as load:
        assert has_successful_probes(testbed.agent.telemetry, "mitigated", (1, 3))
        before = testbed.metadata()
        dry_run = testbed.run_command(*APPLY)
        assert (dry_run["executed"], dry_run["refusals"]) == (False, [])
        assert testbed.read_replicas(topic) == dict(enumerate(rotated))

        case = testbed.run_command(*APPLY, "--execute")
        assert (case["outcome"], case["reason"]) == ("done", "DEGRADED")
        after = testbed.metadata()
        assert not after.led_by(2)
        assert all(metadata.replicas[-1] == 2 for metadata in after.replicated_on(2).values())
        probes = testbed.read_replicas(TOPIC)
        # The agent reads the topic every second, so by then it would have reassigned its partition.
        later = datetime.now(UTC) + timedelta(seconds=5)
        assert is_probed_through_other_leaders(testbed.agent.telemetry, 2, since=later)
        assert testbed.read_replicas(TOPIC) == probes
        assert not testbed.metadata().led_by(2)
        assert testbed.read_refusals() == ["nothing_to_take", "already", "too_soon"]

        assert reassign_topic(testbed.access, topic, {1: (1, 3, 2)})
        wait_until(lambda: testbed.read_replicas(topic)[1] == (1, 3, 2), DEADLINE_S, "the operator's change")
        assert [
            refusal["why"]
            for refusal in testbed.run_command("undo", case["case"], "--execute", exit_code=1)["refusals"]
        ] == ["still_sick"]
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        undone = testbed.run_command("undo", case["case"], "--execute")
        assert (undone["outcome"], undone["words"]) == (
            "undone",
            [f"{topic}-1 not restored, because its replicas were changed to 1, 3, 2"],
        )
        assert testbed.read_replicas(topic) == dict(enumerate(rotated)) | {1: (1, 3, 2)}
        restored = testbed.metadata()
        assert restored.led_by(2) == before.led_by(2) - {TopicPartition(topic, 1)}
    assert load.errors == []
    assert load.received == load.acknowledged > 0
    assert [action["outcome"] for action in testbed.run_command("history")] == ["undone", "refused"]
    assert [body["kind"].removeprefix("MITIGATION_") for body in testbed.on_call.bodies] == [
        "DONE",
        "REFUSED",
        "REFUSED",
        "UNDONE",
    ]


def test_leadership_returns_in_batches_except_for_partitions_changed_in_between(
    testbed: MitigationTestbed,
) -> None:
    testbed.create_topic(*[(2, 3, 1)] * 5, **{"min.insync.replicas": "2"})
    before = testbed.metadata().led_by(2)
    case_id = testbed.run_command(*APPLY, "--execute")["case"]
    testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
    (case,) = testbed.audit_log.read_entries(datetime.now(UTC)).cases
    *_, last = sorted(before)
    led: list[int] = []
    context = open_mitigation(testbed.folder / "fleet.yaml", None)
    with context.open_executor(
        context.find_cluster("mitigated"), MitigationLimits(max_led_per_minute=2)
    ) as executor:

        def wait(seconds: float) -> None:
            if seconds < 60:
                executor.wait(seconds)
                return
            led.append(len(testbed.metadata().led_by(2)))
            assert reassign_topic(testbed.access, last.topic, {last.partition: (1, 3, 2)})

        undone = replace(executor, wait=wait).undo(case, None)
    assert (undone.case_id, undone.outcome) == (case_id, ActionOutcome.UNDONE)
    assert undone.explanations == (
        f"{last.topic}-{last.partition} not restored, because its replicas were changed to 1, 3, 2",
    )
    assert led == list(range(2, len(before), 2))
    assert testbed.metadata().led_by(2) == before - {last}


def test_a_quarantined_broker_replicates_out_of_sync_until_the_undo(testbed: MitigationTestbed) -> None:
    rotated = [BROKERS[shift % 3 :] + BROKERS[: shift % 3] for shift in range(PARTITIONS)]
    topic = testbed.create_topic(*rotated, **{"min.insync.replicas": "2"})

    def out_of_sync() -> list[int]:
        return sorted(
            partition.partition
            for partition, metadata in testbed.metadata().partitions.items()
            if partition.topic == topic and 2 not in metadata.in_sync
        )

    with Load(testbed.access.bootstrap, topic, size=20_000).running() as load:
        case = testbed.run_command(*QUARANTINE, "--execute")
        assert case["outcome"] == "done"
        assert out_of_sync()
        # The broker keeps replicating, and the throttle keeps it out of the ISR.
        acknowledged_before = load.acknowledged
        wait_until(
            lambda: load.acknowledged > acknowledged_before + 200, DEADLINE_S, "more acknowledged records"
        )
        assert out_of_sync()
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        undone = testbed.run_command("undo", case["case"], "--execute")
        assert undone["outcome"] == "undone"
        assert out_of_sync() == []
        assert testbed.admin.read_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS) == ""
        assert testbed.admin.read_broker_setting(2, FOLLOWER_THROTTLED_RATE) is None
    assert load.errors == []
    assert load.received == load.acknowledged > 0


def test_a_replication_throttle_of_an_operator_is_neither_changed_nor_removed(
    testbed: MitigationTestbed,
) -> None:
    testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, "5000000")
    try:
        case = testbed.run_command(*QUARANTINE, "--execute", exit_code=1)
        assert (case["outcome"], "5000000 B/s" in case["words"][0]) == ("failed", True)
        assert [(body["kind"], body["severity"]) for body in testbed.on_call.bodies] == [
            ("MITIGATION_FAILED", "page")
        ]
        assert (
            testbed.run_command("undo", case["case"], "--reason", "not begun", "--execute")["outcome"]
            == "undone"
        )
        assert testbed.admin.read_broker_setting(2, FOLLOWER_THROTTLED_RATE) == "5000000"
    finally:
        testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, None)


def test_without_a_restart_command_no_broker_is_restarted(testbed: MitigationTestbed) -> None:
    testbed.update_fleet_file(restart=[])
    assert testbed.read_refusals(2, "--action", "quarantine_restart") == ["no_restart"]


def test_a_healthy_cluster_refuses_no_action_that_may_be_executed(testbed: MitigationTestbed) -> None:
    proposals = testbed.run_command("plan")
    assert [
        (
            proposal["broker"],
            proposal["action"],
            [refusal["why"] for refusal in proposal["refusals"]],
        )
        for proposal in proposals
    ] == [
        (2, "demote", []),
        (2, "quarantine_restart", []),
        (2, "evacuate", ["too_young", "proposed_only"]),
    ]


def test_the_only_replica_of_a_partition_is_not_demoted(testbed: MitigationTestbed) -> None:
    single_replica_topic = testbed.create_topic((2,))
    assert testbed.read_refusals() == ["only_replica", "min_in_sync"]
    (case,) = testbed.run_command("history")
    assert case["outcome"] == "refused"
    assert single_replica_topic in case["words"][0]


def test_a_broker_needed_for_min_insync_replicas_is_not_demoted(testbed: MitigationTestbed) -> None:
    testbed.create_topic((2, 3), **{"min.insync.replicas": "2"})
    assert testbed.read_refusals() == ["min_in_sync"]


def test_with_two_unhealthy_brokers_none_is_demoted(testbed: MitigationTestbed) -> None:
    testbed.publish_finding(3, HealthState.DEGRADED)
    assert testbed.read_refusals() == ["second_sick"]


def test_without_a_running_watch_earlier_findings_are_no_reason_to_act(testbed: MitigationTestbed) -> None:
    testbed.watch.stop()
    assert testbed.read_refusals() == ["no_watch"]


def test_a_broker_in_planned_maintenance_is_not_demoted(testbed: MitigationTestbed) -> None:
    now = datetime.now(UTC)
    row = maintenance_row(
        now - timedelta(hours=1), now + timedelta(hours=1), cluster_id="mitigated", broker_id=2
    )
    put(testbed.folder / "lake", CORRECTIONS, [row])
    assert testbed.read_refusals() == ["planned"]


def test_a_reorder_that_would_move_data_is_rejected(testbed: MitigationTestbed) -> None:
    """An operator has reassigned the partition since its replicas were read."""
    topic = testbed.create_topic((2, 1))
    with pytest.raises(KafkaUnavailableError, match=f"{topic}-0: its replicas or their order were changed"):
        reorder_replicas(
            testbed.access, {TopicPartition(topic, 0): (3, 2)}, {TopicPartition(topic, 0): [(3, 2), (2, 3)]}
        )
    assert testbed.read_replicas(topic) == {0: (2, 1)}
    with pytest.raises(KafkaUnavailableError, match="their order were changed in the meantime"):
        reorder_replicas(
            testbed.access, {TopicPartition(topic, 0): (1, 2)}, {TopicPartition(topic, 0): [(1, 2)]}
        )
    assert testbed.read_replicas(topic) == {0: (2, 1)}
    assert reorder_replicas(
        testbed.access, {TopicPartition(topic, 0): (1, 2)}, {TopicPartition(topic, 0): [(2, 1)]}
    )
    wait_until(lambda: testbed.read_replicas(topic) == {0: (1, 2)}, DEADLINE_S, "the order")


def test_an_interrupted_action_is_marked_failed_and_notified(testbed: MitigationTestbed) -> None:
    _store_action(testbed, 2, "z2", ActionOutcome.BEGUN)
    assert testbed.read_refusals() == ["already", "circuit_open"]
    with testbed.running_controller(MitigationLimits()):
        testbed.wait_for_notification("MITIGATION_FAILED")
    assert [action["outcome"] for action in testbed.run_command("history")] == ["failed", "refused"]


def test_during_a_reassignment_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    topic = testbed.create_topic((1, 3), **{"min.insync.replicas": "1"})
    _fill(testbed.access.bootstrap, topic)
    with _throttled(testbed, topic):
        assert reassign_topic(testbed.access, topic, {0: (1, 2)})
        assert testbed.read_refusals() == ["moving"]
    wait_until(lambda: not testbed.metadata().reassigning, DEADLINE_S, "the reassignment")


def test_while_a_broker_of_another_zone_is_demoted_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    _store_action(testbed, 3, "z3", ActionOutcome.DONE)
    assert testbed.read_refusals() == ["other_zone"]


def test_while_the_circuit_breaker_is_open_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    """It was opened by a failed action on the same broker, so that the rule about zones does not apply."""
    _store_action(testbed, 2, "z2", ActionOutcome.FAILED)
    assert testbed.read_refusals() == ["already", "circuit_open"]


def test_a_disabled_action_is_neither_executed_nor_proposed(testbed: MitigationTestbed) -> None:
    testbed.update_fleet_file(mitigation={"demote": False})
    assert testbed.read_refusals() == ["off"]
    assert "demote" not in [proposal["action"] for proposal in testbed.run_command("plan")]


def test_an_evacuation_is_proposed_only(testbed: MitigationTestbed) -> None:
    assert testbed.read_refusals(2, "--action", "evacuate") == ["too_young", "proposed_only"]


def test_a_hung_broker_is_restarted_and_returns(
    testbed: MitigationTestbed, mitigated_fleet: LocalFleet
) -> None:
    testbed.publish_finding(2, HealthState.BROKER_DOWN)
    mitigated_fleet.fault("hang", "mitigated", 2)
    wait_until(lambda: testbed.metadata().brokers[2].fenced, DEADLINE_S, "the broker to be fenced")
    case = testbed.run_command(*APPLY, "--action", "restart", "--execute")
    assert (case["outcome"], case["reason"]) == ("done", "DEGRADED, BROKER_DOWN")
    assert not testbed.metadata().brokers[2].fenced
    # The restart has ended, so only the minimum interval between two actions refuses another one.
    refusals = testbed.run_command(*APPLY, "--action", "restart", exit_code=1)["refusals"]
    assert [refusal["why"] for refusal in refusals] == ["too_soon"]
    wait_until(lambda: _in_sync_everywhere(testbed, 2), DEADLINE_S, "broker 2 to catch up")


def test_mitigate_run_demotes_a_broker_and_undoes_it_once_the_broker_is_healthy(
    testbed: MitigationTestbed,
) -> None:
    testbed.update_fleet_file(mitigation={"demote": "act", "quarantine_restart": "off"})
    before = testbed.metadata().led_by(2)
    with testbed.running_controller(MitigationLimits(undo_after=timedelta(0))):
        testbed.wait_for_notification("MITIGATION_DONE")
        assert not testbed.metadata().led_by(2)
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        testbed.wait_for_notification("MITIGATION_UNDONE")
    assert testbed.metadata().led_by(2) >= before
    (case,) = testbed.run_command("history")
    assert (case["outcome"], case["author"]) == ("undone", "fleetgauge mitigate run")


def test_mitigate_run_in_advise_mode_notifies_the_on_call_person_and_resolves_it(
    testbed: MitigationTestbed,
) -> None:
    before = testbed.metadata()
    with testbed.running_controller(MitigationLimits()):
        testbed.wait_for_notification("MITIGATION_ADVISED")
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        wait_until(lambda: len(testbed.on_call.bodies) == 2, DEADLINE_S, "the resolution")
    assert testbed.metadata() == before
    advised, resolved = testbed.on_call.bodies
    assert (advised["status"], advised["severity"], resolved["status"]) == ("firing", "ticket", "resolved")
    assert advised["fingerprint"] == resolved["fingerprint"]
    assert "mitigate apply --cluster mitigated --broker 2 --action demote" in advised["words"][0]
    (case,) = testbed.run_command("history")
    assert (case["outcome"], case["ended"] is not None) == ("advised", True)


def test_mitigate_run_without_a_writable_audit_log_does_not_act_and_notifies_once(
    testbed: MitigationTestbed,
) -> None:
    before, table = testbed.metadata(), testbed.folder / "lake" / ACTIONS.path
    moved_table = table.with_name("moved")
    testbed.update_fleet_file(mitigation={"demote": "act"})
    table.rename(moved_table)
    with testbed.running_controller(MitigationLimits()):
        testbed.wait_for_notification("MITIGATION_STANDS_STILL")
        assert testbed.metadata() == before
        moved_table.rename(table)
        wait_until(lambda: len(testbed.on_call.bodies) == 3, DEADLINE_S, "mitigate run to resume")
    stalled, resumed = (body for body in testbed.on_call.bodies if body["kind"] == "MITIGATION_STANDS_STILL")
    (done,) = (body for body in testbed.on_call.bodies if body["kind"] != "MITIGATION_STANDS_STILL")
    assert [body["status"] for body in (stalled, resumed)] == ["firing", "resolved"]
    assert stalled["fingerprint"] == resumed["fingerprint"]
    assert "ops/actions" in stalled["words"][0]
    assert (done["kind"], testbed.metadata().led_by(2)) == ("MITIGATION_DONE", set())


def test_a_late_finding_of_a_partitioned_watch_does_not_reopen_an_alert(testbed: MitigationTestbed) -> None:
    """It arrives after another watch has published that the alert is over."""
    testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=1)
    testbed.publish_finding(2, HealthState.DEGRADED, minutes_ago=4)
    assert testbed.read_refusals() == ["no_finding"]


def test_mitigate_run_retries_a_notification_until_it_is_accepted(testbed: MitigationTestbed) -> None:
    """It retries after its immediate attempts too; a ticket that was not accepted would be lost otherwise."""
    testbed.on_call.answers = [503] * 5
    with testbed.running_controller(MitigationLimits()):
        wait_until(lambda: len(testbed.on_call.bodies) >= 6, DEADLINE_S, "the retry")
        wait_until(
            lambda: testbed.run_command("history")[0]["told"] == ["127.0.0.1"],
            DEADLINE_S,
            "the delivery to be stored",
        )
    assert {body["id"] for body in testbed.on_call.bodies} == {testbed.on_call.bodies[0]["id"]}
    assert len(testbed.on_call.bodies) == 6


def test_two_processes_do_not_act_on_a_cluster_at_the_same_time(testbed: MitigationTestbed) -> None:
    telemetry = testbed.agent.telemetry
    with hold_cluster_leadership(telemetry, "mitigated"), hold_cluster_leadership(telemetry, "another"):
        result = CliRunner().invoke(
            mitigate,
            [*APPLY, "--execute", "--config", str(testbed.folder / "fleet.yaml")],
        )
    assert result.exit_code == 2
    assert "not elected leader of the consumer group fleetgauge-mitigate.mitigated" in result.stderr
    assert testbed.run_command("history") == []


def _in_sync_everywhere(testbed: MitigationTestbed, broker: int) -> bool:
    return all(broker in metadata.in_sync for metadata in testbed.metadata().replicated_on(broker).values())


def _store_action(testbed: MitigationTestbed, broker: int, zone: str, outcome: ActionOutcome) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    testbed.audit_log.add_case(
        ActionCase("c1", ActionKind.DEMOTE, "mitigated", broker, zone, "ann", "DEGRADED", began, outcome)
    )


def _fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(200):
        producer.produce(topic, bytes(10_000))
    assert producer.flush(DEADLINE_S) == 0


@contextmanager
def _throttled(testbed: MitigationTestbed, topic: str) -> Iterator[None]:
    """Stop the replication to new replicas of the topic."""

    def alter(resource_type: Any, name: str, key: str, value: str | None) -> None:
        operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        resource = ConfigResource(resource_type, name, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": testbed.access.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def limit(rate: str | None, replicas: str | None) -> None:
        alter(ResourceType.TOPIC, topic, "follower.replication.throttled.replicas", replicas)
        alter(ResourceType.BROKER, "2", "follower.replication.throttled.rate", rate)

    limit("1", "*")
    try:
        yield
    finally:
        limit(None, None)


@dataclass
class RealCluster:
    """The control loop of real brokers, whose clock a scenario moves."""

    testbed: MitigationTestbed
    offset: timedelta = timedelta(0)

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def open_context(self) -> MitigationContext:
        context = open_mitigation(self.testbed.folder / "fleet.yaml", None)
        return replace(context, clock=self.clock, observer=replace(context.observer, clock=self.clock))

    def open_alert(self, broker_id: int, state: HealthState = HealthState.DEGRADED) -> None:
        self.testbed.publish_finding(broker_id, state)

    def clear_alert(self, broker_id: int) -> None:
        self.testbed.publish_finding(broker_id, HealthState.HEALTHY, minutes_ago=0)

    def set_modes(self, **modes: str) -> None:
        self.testbed.update_fleet_file(mitigation=modes)

    def advance(self, duration: timedelta) -> None:
        self.offset += duration

    def take_next_step(self) -> ActionCase | None:
        context = self.open_context()
        return context.create_control_loops()["mitigated"].take_next_step(context.read_findings())

    def led_by(self, broker_id: int) -> frozenset[TopicPartition]:
        return self.testbed.metadata().led_by(broker_id)

    def interrupt(self, case: ActionCase) -> None:
        self.testbed.audit_log.update_case(replace(case, outcome=ActionOutcome.BEGUN))

    def undo(self, case_id: str, reason: str) -> ActionCase:
        context = self.open_context()
        (case,) = (case for case in self.read_cases() if case.case_id == case_id)
        with context.open_executor(context.find_cluster("mitigated")) as executor:
            return executor.undo(case, reason)

    def read_cases(self) -> list[ActionCase]:
        return list(self.testbed.audit_log.read_entries(self.clock()).cases)


class TestControlLoop(ControlLoopScenarios):
    @pytest.fixture
    def cluster(self, testbed: MitigationTestbed) -> RealCluster:
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=5)
        return RealCluster(testbed)
