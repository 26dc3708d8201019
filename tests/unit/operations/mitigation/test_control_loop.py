"""The scenarios of the control loop, on a cluster in memory."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count

import pytest

from fleetgauge_core.detection import Finding, HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_operations.actions.executor import ActionExecutor
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS
from fleetgauge_operations.mitigation.plan.rules import build_rules
from fleetgauge_operations.mitigation.steps import build_steps
from tests.control_loop_scenarios import ControlLoopScenarios
from tests.unit.operations.mitigation.simulated_cluster import SimulatedCluster


@dataclass
class MemoryCluster:
    """A simulated cluster, as the control loop and its scenarios see it."""

    simulated: SimulatedCluster = field(default_factory=SimulatedCluster)
    is_led_by_another_process: bool = False
    case_ids: Iterator[int] = field(default_factory=count)

    @property
    def cluster_id(self) -> str:
        return "orders"

    def read_snapshot(self, _: Sequence[Finding]) -> ClusterSnapshot:
        return self.simulated.observe("")

    @contextmanager
    def open_executor(self) -> Iterator[ActionExecutor]:
        if self.is_led_by_another_process:
            raise LeadershipTakenError("another process is leader of the consumer group")
        yield ActionExecutor(
            self.simulated.observe,
            build_rules(),
            build_steps(self.simulated, DEFAULT_LIMITS),
            self.simulated,
            lambda: True,
            self.simulated.clock,
            self.simulated.wait,
        )

    def open_alert(self, broker_id: int, state: HealthState = HealthState.DEGRADED) -> None:
        since = self.simulated.now - timedelta(minutes=5)
        self.simulated.alerts += (ActiveAlert(broker_id, state, since),)

    def clear_alert(self, broker_id: int) -> None:
        self.simulated.alerts = tuple(
            alert for alert in self.simulated.alerts if alert.broker_id != broker_id
        )
        self.simulated.healthy_since[broker_id] = self.simulated.now

    def set_modes(self, **modes: str) -> None:
        self.simulated.modes |= modes

    def advance(self, duration: timedelta) -> None:
        self.simulated.now += duration

    def take_next_step(self) -> ActionCase | None:
        return ControlLoop(self, self.simulated.clock, lambda: f"c{next(self.case_ids)}").take_next_step([])

    def led_by(self, broker_id: int) -> Set[TopicPartition]:
        return self.simulated.metadata.led_by(broker_id)

    def interrupt(self, case: ActionCase) -> None:
        self.simulated.update_case(replace(case, outcome=ActionOutcome.BEGUN))

    def undo(self, case_id: str, reason: str) -> ActionCase:
        with self.open_executor() as executor:
            return executor.undo(self.simulated.cases[case_id], reason)

    def read_cases(self) -> list[ActionCase]:
        return list(self.simulated.cases.values())


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


class TestControlLoop(ControlLoopScenarios):
    pass


def test_while_another_process_leads_nothing_is_changed(cluster: MemoryCluster) -> None:
    cluster.set_modes(demote="act")
    cluster.open_alert(2)
    cluster.is_led_by_another_process = True
    with pytest.raises(LeadershipTakenError):
        cluster.take_next_step()
    assert cluster.read_cases() == []
    assert cluster.led_by(2)


def test_a_step_that_another_process_has_taken_is_not_taken_again(cluster: MemoryCluster) -> None:
    """The other process acts after this one has decided, and before this one is the leader."""

    @dataclass
    class OvertakenCluster(MemoryCluster):
        overtaken: bool = False

        @contextmanager
        def open_executor(self) -> Iterator[ActionExecutor]:
            if not self.overtaken:
                self.overtaken = True
                self.take_next_step()
            with super().open_executor() as executor:
                yield executor

    overtaken = OvertakenCluster()
    overtaken.set_modes(demote="act")
    overtaken.open_alert(2)
    assert overtaken.take_next_step() is None
    assert [case.outcome for case in overtaken.read_cases()] == [ActionOutcome.DONE]
    assert overtaken.simulated.requests.count("reorder 2") == 1


def test_a_down_broker_is_restarted_twice_and_then_handed_to_an_operator(cluster: MemoryCluster) -> None:
    cluster.set_modes(restart="act")
    cluster.simulated.update_broker(2, fenced=True)
    cluster.open_alert(2, HealthState.BROKER_DOWN)
    outcomes = []
    for _ in range(4):
        step = cluster.take_next_step()
        outcomes.append(step.outcome if step else None)
        cluster.advance(DEFAULT_LIMITS.restart_window)
    assert outcomes == [ActionOutcome.DONE, ActionOutcome.DONE, ActionOutcome.REFUSED, None]
    assert cluster.simulated.requests == ["restart", "restart"]
    assert cluster.read_cases()[-1].against == ("exhausted",)


def test_an_undo_that_a_fail_safe_refuses_is_no_step(cluster: MemoryCluster) -> None:
    """The fail-safe arises between the decision and the undo."""

    @dataclass
    class ReassigningCluster(MemoryCluster):
        @contextmanager
        def open_executor(self) -> Iterator[ActionExecutor]:
            with super().open_executor() as executor:
                yield replace(executor, observe=self.observe)

        def observe(self, case_id: str) -> ClusterSnapshot:
            snapshot = self.simulated.observe(case_id)
            if (
                case_id in self.simulated.cases
                and self.simulated.cases[case_id].outcome is ActionOutcome.DONE
            ):
                moving = replace(snapshot.metadata, reassigning=frozenset({TopicPartition("t", 0)}))
                return replace(snapshot, metadata=moving)
            return snapshot

    reassigning = ReassigningCluster()
    reassigning.set_modes(demote="act")
    reassigning.open_alert(2)
    demotion = reassigning.take_next_step()
    assert demotion is not None
    reassigning.clear_alert(2)
    reassigning.advance(DEFAULT_LIMITS.undo_after * 2)
    assert reassigning.take_next_step() is None
    assert reassigning.read_cases() == [demotion]
