"""`mitigate run` with the control loops of several clusters in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import pytest

from fleetgauge_core.detection import Finding, FindingSubject, HealthCondition, HealthState
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation import controller as controller_module
from fleetgauge_operations.mitigation.controller import MitigationController
from tests.unit.operations.mitigation.simulated_cluster import NOON
from tests.waiting import wait_until

DEADLINE_S = 30


def done_case(cluster_id: str) -> ActionCase:
    return ActionCase(
        f"case-of-{cluster_id}",
        ActionKind.DEMOTE,
        cluster_id,
        2,
        None,
        "ann",
        "DEGRADED",
        NOON,
        ActionOutcome.DONE,
        ended=NOON,
    )


def degraded(cluster_id: str) -> Finding:
    subject = FindingSubject(cluster_id, HealthCondition.DEGRADED, 2)
    return build_finding(subject, HealthState.HEALTHY, HealthState.DEGRADED, NOON, {})


@dataclass
class MemoryFleet:
    """Findings and cases of a fleet in memory."""

    findings: Sequence[Finding]
    cases: list[ActionCase] = field(default_factory=list)
    findings_error: Exception | None = None
    cases_error: Exception | None = None
    rounds: int = 0

    def read_findings(self) -> Sequence[Finding]:
        self.rounds += 1
        if self.findings_error:
            raise self.findings_error
        return self.findings

    def read_cases(self) -> Sequence[ActionCase]:
        if self.cases_error:
            raise self.cases_error
        return list(self.cases)


@dataclass
class ScriptedLoop:
    """A control loop whose steps wait until they are released, and end as the test says."""

    result: ActionCase | Exception | None = None
    steps: int = 0
    released: Event = field(default_factory=Event)

    def take_next_step(self, _: Sequence[Finding], __: Callable[[], None]) -> ActionCase | None:
        self.steps += 1
        assert self.released.wait(DEADLINE_S)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@dataclass
class RecordingNotifier:
    """A notifier that records what it is asked to do."""

    outages: dict[str, str] = field(default_factory=dict)
    resolved_outages: list[str] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)
    is_due: bool = False
    sent: int = 0

    def notify(self, cases: Sequence[ActionCase]) -> None:
        self.notified = [case.case_id for case in cases]

    def report_outage(self, cluster_id: str, cause: str) -> None:
        self.outages[cluster_id] = cause

    def end_outage(self, cluster_id: str) -> None:
        if self.outages.pop(cluster_id, None):
            self.resolved_outages.append(cluster_id)

    def has_outage(self, cluster_id: str) -> bool:
        return cluster_id in self.outages

    def send(self) -> None:
        self.sent += 1


class SettableClock:
    """A monotonic clock in seconds that a test moves while other threads read it."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._lock = Lock()

    def __call__(self) -> float:
        with self._lock:
            return self._now_s

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now_s += seconds


@dataclass
class RunningController:
    """A controller that runs in a thread."""

    fleet: MemoryFleet
    loops: Mapping[str, ScriptedLoop]
    notifier: RecordingNotifier = field(default_factory=RecordingNotifier)
    clock: SettableClock = field(default_factory=SettableClock)
    shown: list[str] = field(default_factory=list)
    results: list[tuple[ActionCase, ...]] = field(default_factory=list)
    heartbeats: int = 0
    shutdown: ShutdownFlag = field(default_factory=ShutdownFlag)

    def run(self) -> None:
        test = self

        class CountingHealth(ProcessHealth):
            def record_heartbeat(self) -> None:
                test.heartbeats += 1

        loops: Any = self.loops
        notifier: Any = self.notifier
        controller = MitigationController(
            self.fleet,
            loops,
            notifier,
            lambda: None,
            CountingHealth("mitigate", 900),
            lambda case: self.shown.append(case.case_id),
            self.clock,
        )
        self.results.append(controller.run(self.shutdown))

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            for loop in self.loops.values():
                loop.released.set()
            self.shutdown.set()
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

    def wait_for_rounds(self, count: int) -> None:
        """Wait until the main loop has notified that many times."""
        before = self.notifier.sent
        wait_for(lambda: self.notifier.sent >= before + count, "rounds of the main loop")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, DEADLINE_S, what)


def test_a_long_action_on_a_cluster_does_not_delay_another_cluster() -> None:
    loops = {"orders": ScriptedLoop(), "payments": ScriptedLoop(done_case("payments"))}
    controller = RunningController(MemoryFleet([degraded("orders"), degraded("payments")]), loops)
    loops["payments"].released.set()
    with controller.running():
        wait_for(lambda: controller.shown == ["case-of-payments"], "the case of payments")
        assert loops["orders"].steps == 1
        assert not loops["orders"].released.is_set()
    assert [case.cluster_id for case in controller.results[0]] == ["payments"]


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "_WAIT_S", 0.01)
    monkeypatch.setattr(controller_module, "_WAITS_PER_ROUND", 2)


@pytest.mark.usefixtures("short_rounds")
def test_a_cluster_has_one_step_at_a_time_over_all_rounds() -> None:
    loops = {"orders": ScriptedLoop(done_case("orders"))}
    controller = RunningController(MemoryFleet([degraded("orders")]), loops)
    with controller.running():
        wait_for(lambda: controller.fleet.rounds >= 5, "five rounds")
        assert loops["orders"].steps == 1
        loops["orders"].released.set()
        wait_for(lambda: loops["orders"].steps >= 2, "another step after the first one")
    assert len(controller.shown) == loops["orders"].steps


def test_at_shutdown_running_steps_complete_and_no_further_step_begins() -> None:
    """More clusters have work than steps can run at the same time."""
    clusters = [f"cluster-{number}" for number in range(40)]
    loops = {cluster_id: ScriptedLoop(done_case(cluster_id)) for cluster_id in clusters}
    controller = RunningController(MemoryFleet([degraded(cluster_id) for cluster_id in clusters]), loops)

    def count_begun() -> int:
        return sum(loop.steps for loop in loops.values())

    with controller.running():
        wait_for(lambda: count_begun() == 16, "the first steps")
        controller.shutdown.set()
        before = controller.heartbeats
        wait_for(lambda: controller.heartbeats > before + 1, "heartbeats while the steps complete")
    assert count_begun() == 16
    assert len(controller.shown) == 16


@pytest.mark.usefixtures("short_rounds")
def test_a_fault_on_one_cluster_does_not_stop_actions_on_another(caplog: pytest.LogCaptureFixture) -> None:
    loops = {"orders": ScriptedLoop(RuntimeError("a bug")), "payments": ScriptedLoop(done_case("payments"))}
    for loop in loops.values():
        loop.released.set()
    controller = RunningController(MemoryFleet([degraded("orders"), degraded("payments")]), loops)
    with controller.running():
        wait_for(lambda: loops["orders"].steps >= 2, "the step to be tried again")
    assert "case-of-payments" in controller.shown
    assert "orders: the step failed" in caplog.text


@pytest.mark.usefixtures("short_rounds")
def test_the_ticket_of_an_outage_is_resolved_by_the_next_step_without_an_alert_too() -> None:
    loops = {"orders": ScriptedLoop(TableStoreError("ops/actions cannot be written"))}
    loops["orders"].released.set()
    controller = RunningController(MemoryFleet([degraded("orders")]), loops)
    with controller.running():
        wait_for(lambda: bool(controller.notifier.outages), "the ticket")
        controller.fleet.findings = []
        loops["orders"].result = None
        wait_for(lambda: controller.notifier.resolved_outages == ["orders"], "the resolution")
    assert controller.notifier.outages == {}


def test_a_cluster_without_alerts_or_open_cases_is_left_alone() -> None:
    ended = done_case("payments")
    loops = {name: ScriptedLoop() for name in ("orders", "payments", "returns")}
    for loop in loops.values():
        loop.released.set()
    interrupted = ActionCase(
        "c1", ActionKind.DEMOTE, "returns", 2, None, "ann", "DEGRADED", NOON, ActionOutcome.BEGUN
    )
    fleet = MemoryFleet([degraded("orders")], [ended, interrupted])
    with RunningController(fleet, loops).running():
        wait_for(lambda: loops["orders"].steps == 1 and loops["returns"].steps == 1, "the steps")
    assert loops["payments"].steps == 0


@pytest.mark.parametrize("error", [KafkaUnavailableError("no broker"), LeadershipTakenError("taken")])
def test_a_cluster_that_cannot_be_changed_now_opens_no_ticket(error: Exception) -> None:
    loops = {"orders": ScriptedLoop(error)}
    loops["orders"].released.set()
    controller = RunningController(MemoryFleet([degraded("orders")]), loops)
    with controller.running():
        wait_for(lambda: loops["orders"].steps == 1, "the step")
    assert controller.notifier.outages == {}
    assert controller.results == [()]


def test_an_action_that_cannot_be_audited_opens_a_ticket() -> None:
    loops = {"orders": ScriptedLoop(TableStoreError("ops/actions cannot be written"))}
    loops["orders"].released.set()
    controller = RunningController(MemoryFleet([degraded("orders")]), loops)
    with controller.running():
        wait_for(lambda: bool(controller.notifier.outages), "the ticket")
    assert controller.notifier.outages == {"orders": "ops/actions cannot be written"}


def test_an_unreadable_audit_log_opens_a_ticket_for_each_cluster_with_an_unhealthy_broker() -> None:
    fleet = MemoryFleet([degraded("orders")], cases_error=TableStoreError("no such table"))
    loops = {"orders": ScriptedLoop(), "payments": ScriptedLoop()}
    controller = RunningController(fleet, loops)
    with controller.running():
        wait_for(lambda: bool(controller.notifier.outages), "the ticket")
    assert controller.notifier.outages == {"orders": "no such table"}
    assert loops["orders"].steps == 0


def test_without_findings_nothing_is_done_and_cases_are_still_notified() -> None:
    fleet = MemoryFleet([], [done_case("orders")], findings_error=KafkaUnavailableError("no broker"))
    controller = RunningController(fleet, {"orders": ScriptedLoop()})
    with controller.running():
        wait_for(lambda: controller.notifier.notified == ["case-of-orders"], "the notification")
    assert controller.loops["orders"].steps == 0


def test_the_process_counts_as_stuck_once_a_step_makes_no_progress_for_long() -> None:
    loops = {"orders": ScriptedLoop()}
    controller = RunningController(MemoryFleet([degraded("orders")]), loops)
    with controller.running():
        wait_for(lambda: loops["orders"].steps == 1, "the step")
        before = controller.heartbeats
        wait_for(lambda: controller.heartbeats > before, "a heartbeat while the step runs")
        controller.clock.advance(16 * 60)
        controller.notifier.is_due = True
        # A round of the main loop may have begun before the clock was moved.
        controller.wait_for_rounds(2)
        stuck_at = controller.heartbeats
        controller.wait_for_rounds(2)
        assert controller.heartbeats == stuck_at
