"""A real cluster under mitigation: its fleet file and lake, what an operator and a watch do with it."""

import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient

from fleetgauge_core.detection import FindingSubject, HealthCondition, HealthState
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.fleet import ClusterAccess, load_fleet
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    ClusterAdmin,
    LeaderElection,
    RecordProducer,
    TopicSpec,
    ensure_state_topic,
    read_cluster_metadata,
)
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ACTIONS, CORRECTIONS, ActionKind, ActionOutcome
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.cli import mitigate
from fleetgauge_operations.mitigation.context import open_mitigation
from fleetgauge_operations.mitigation.controller import MitigationController
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from tests.browser.lake import put
from tests.kafka.agents import Agent, build_fleet
from tests.receiver import Receiver
from tests.waiting import wait_until

DEADLINE_S = 60


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
    def running_controller(
        self, limits: MitigationLimits, ends_within_s: float = 2 * DEADLINE_S
    ) -> Iterator[None]:
        """Run `mitigate run` until the block is left."""
        context = open_mitigation(self.folder / "fleet.yaml", None)
        controller = MitigationController(
            context,
            context.create_control_loops(limits),
            context.create_case_notifier(),
            lambda: None,
            ProcessHealth("mitigate", 900),
            lambda _: None,
            time.monotonic,
        )
        with running_thread(controller.run, ends_within_s):
            yield

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


@contextmanager
def open_testbed(
    mitigated_fleet: LocalFleet, telemetry_fleet: LocalFleet, folder: Path
) -> Iterator[MitigationTestbed]:
    """Yield the cluster `mitigated` of a fleet under mitigation, with topics and tables of its own."""
    fleet, telemetry = build_fleet(mitigated_fleet, ["mitigated"], telemetry_fleet=telemetry_fleet)
    document = fleet.model_dump(mode="json", exclude_defaults=True)
    document["clusters"][0]["restart"] = build_restart_command(mitigated_fleet)
    for topic in ("watch_state", "demotions"):
        document["telemetry"]["topics"][topic] = {"name": f"{topic}-{uuid.uuid4().hex[:8]}"}
    document["lake"] = str(folder / "lake")
    on_call = Receiver()
    document["notifiers"] = [{"kind": "webhook", "url": on_call.url}]
    (folder / "fleet.yaml").write_text(yaml.safe_dump(document))
    described = load_fleet(folder / "fleet.yaml")
    assert described.telemetry is not None
    for table in (ACTIONS, CORRECTIONS):
        put(folder / "lake", table, [])
    agent = Agent(described, described.telemetry, folder / "spool")
    ensure_state_topic(described.telemetry, described.telemetry.topics.watch_state)
    watch = LeaderElection(telemetry.access, described.telemetry.topics.watch_state.name)
    testbed = MitigationTestbed(
        folder, ClusterAccess(mitigated_fleet.bootstrap("mitigated")), agent, on_call, watch
    )
    telemetry_admin = ClusterAdmin(telemetry.access)
    telemetry_admin.start()
    telemetry_admin.create_topic(
        TopicSpec(telemetry.topics.health_events.name, partitions=1, replication_factor=1)
    )
    with on_call.listening(), elected(watch):
        yield testbed
    # A test that failed half-way must not leave its throttle to the next one.
    testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, None)
    admin = AdminClient({"bootstrap.servers": testbed.access.bootstrap})
    for deletion in admin.delete_topics(testbed.topics).values() if testbed.topics else ():
        deletion.result(DEADLINE_S)


@contextmanager
def elected(election: LeaderElection) -> Iterator[None]:
    election.start()
    try:
        assert election.wait_for_leadership(DEADLINE_S)
        yield
    finally:
        election.stop()


def _without_ages(words: str) -> str:
    """Replace ages in seconds, which differ between two runs of a command."""
    return re.sub(r"\d+ s\b", "some s", words)


def build_restart_command(mitigated_fleet: LocalFleet) -> list[str]:
    """Return a restart command that kills and starts a broker."""
    script = (
        "import sys; from pathlib import Path; from fleetgauge_local.fleet import LocalFleet; "
        "fleet = LocalFleet(Path(sys.argv[1])); broker = int(sys.argv[2]); "
        "fleet.fault('kill', 'mitigated', broker); fleet.fault('heal', 'mitigated', broker)"
    )
    return [sys.executable, "-c", script, str(mitigated_fleet.status().directory), "{broker}"]


def store_action(testbed: MitigationTestbed, broker: int, zone: str, outcome: ActionOutcome) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    testbed.audit_log.add_case(
        ActionCase("c1", ActionKind.DEMOTE, "mitigated", broker, zone, "ann", "DEGRADED", began, outcome)
    )


@contextmanager
def running_thread(
    run: Callable[[ShutdownFlag], None], ends_within_s: float = 2 * DEADLINE_S
) -> Iterator[None]:
    """Run a thread; ask it to stop when the block is left, and wait for it."""
    shutdown = ShutdownFlag()
    thread = threading.Thread(target=run, args=(shutdown,))
    thread.start()
    try:
        yield
    finally:
        shutdown.set()
        thread.join(ends_within_s)
        assert not thread.is_alive()
