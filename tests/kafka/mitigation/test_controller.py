"""`mitigate run` with real brokers, and the scenarios of its control loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import FOLLOWER_THROTTLED_REPLICAS
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ACTIONS, ActionOutcome
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.context import MitigationContext, open_mitigation
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from tests.control_loop_scenarios import ControlLoopScenarios
from tests.kafka.mitigation.load import PARTITIONS, Load
from tests.kafka.mitigation.testbed import DEADLINE_S, MitigationTestbed, store_action
from tests.waiting import wait_until

BROKERS = (1, 2, 3)


@contextmanager
def killed_broker(fleet: LocalFleet, broker: int) -> Iterator[None]:
    """Kill a broker, and start it again whatever the test does: the tests after it use the same brokers."""
    fleet.fault("kill", "mitigated", broker)
    try:
        yield
    finally:
        fleet.fault("heal", "mitigated", broker)
        fleet.wait_ready()


def test_an_interrupted_action_is_marked_failed_and_notified(testbed: MitigationTestbed) -> None:
    store_action(testbed, 2, "z2", ActionOutcome.BEGUN)
    assert testbed.read_refusals() == ["already", "circuit_open"]
    with testbed.running_controller(MitigationLimits()):
        testbed.wait_for_notification("MITIGATION_FAILED")
    assert [action["outcome"] for action in testbed.run_command("history")] == ["failed", "refused"]


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


def test_mitigate_run_releases_a_quarantine_when_a_second_broker_dies(
    testbed: MitigationTestbed, mitigated_fleet: LocalFleet
) -> None:
    """With one replica held out and one dead, producers with acks=all could not go on."""
    rotated = [BROKERS[shift % 3 :] + BROKERS[: shift % 3] for shift in range(PARTITIONS)]
    topic = testbed.create_topic(*rotated, **{"min.insync.replicas": "2"})
    testbed.update_fleet_file(mitigation={"demote": "off", "restart": "off", "quarantine_restart": "act"})
    quarantine = ("apply", "--cluster", "mitigated", "--broker", "2", "--action", "quarantine_restart")

    def is_held_out() -> bool:
        partitions = testbed.metadata().replicated_on(2).items()
        return any(
            2 not in metadata.in_sync for partition, metadata in partitions if partition.topic == topic
        )

    def read_case() -> Any:
        (stored,) = [each for each in testbed.run_command("history") if each["case"] == case["case"]]
        return stored

    with Load(testbed.access.bootstrap, topic, size=20_000).running() as load:
        case = testbed.run_command(*quarantine, "--execute")
        wait_until(is_held_out, DEADLINE_S, "the quarantine")
        with testbed.running_controller(MitigationLimits()), killed_broker(mitigated_fleet, 3):
            wait_until(lambda: read_case()["outcome"] == "undone", DEADLINE_S, "the release")
            acknowledged = load.acknowledged
            wait_until(lambda: load.acknowledged > acknowledged + 200, DEADLINE_S, "acknowledged records")
    assert load.received == load.acknowledged
    pages = [body for body in testbed.on_call.bodies if body["severity"] == "page"]
    assert [(page["kind"], page["status"]) for page in pages][:1] == [("MITIGATION_ADVISED", "firing")]
    assert "under min.insync.replicas while broker 2 is kept out of sync" in pages[0]["words"][0]
    assert read_case()["words"][0].startswith("released, because producers fail in ")
    assert not testbed.admin.read_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS)


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
        return list(self.testbed.audit_log.read_entries().cases)


class TestControlLoop(ControlLoopScenarios):
    @pytest.fixture
    def cluster(self, testbed: MitigationTestbed) -> RealCluster:
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=5)
        return RealCluster(testbed)
