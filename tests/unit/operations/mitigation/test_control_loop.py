"""The scenarios of the control loop, on a cluster in memory."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.runtime.steady_clock import EARLY, SteadyClock
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.actions.executor import ActionExecutor
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS
from tests.control_loop_scenarios import ControlLoopScenarios
from tests.unit.operations.mitigation.simulated_cluster import NOON, SimulatedCluster


@dataclass
class MemoryCluster(SimulatedCluster):
    """A simulated cluster, as the scenarios of the control loop see it."""

    case_ids: Iterator[int] = field(default_factory=count)

    def open_alert(self, broker_id: int, state: HealthState = HealthState.DEGRADED) -> None:
        since = self.now - timedelta(minutes=5)
        self.alerts += (ActiveAlert(broker_id, state, since),)

    def clear_alert(self, broker_id: int) -> None:
        self.alerts = tuple(alert for alert in self.alerts if alert.broker_id != broker_id)
        self.healthy_since[broker_id] = self.now

    def set_modes(self, **modes: str) -> None:
        self.modes |= modes

    def advance(self, duration: timedelta) -> None:
        self.now += duration

    def take_next_step(self) -> ActionCase | None:
        return ControlLoop(self, self.clock, lambda: f"c{next(self.case_ids)}").take_next_step([])

    def led_by(self, broker_id: int) -> Set[TopicPartition]:
        return self.metadata.led_by(broker_id)

    def interrupt(self, case: ActionCase) -> None:
        self.update_case(replace(case, outcome=ActionOutcome.BEGUN))

    def undo(self, case_id: str, reason: str) -> ActionCase:
        with self.open_executor() as executor:
            return executor.undo(self.cases[case_id], reason)

    def read_cases(self) -> list[ActionCase]:
        return list(self.cases.values())


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


class TestControlLoop(ControlLoopScenarios):
    pass


class SteppedCluster(MemoryCluster):
    """The cluster of a process on a machine whose clock is set right after the process has begun."""

    def __init__(self, step: timedelta) -> None:
        super().__init__()
        self._step = timedelta(0)
        self._steady = SteadyClock(
            wall=lambda: self.now + self._step,
            clock_ns=lambda: round((self.now - NOON).total_seconds() * 1e9),
        )
        self.now += 2 * EARLY
        self._step = step

    def clock(self) -> datetime:
        return self._steady.now()


class TestControlLoopWhenTheClockIsSet(ControlLoopScenarios):
    """The same steps are taken, none of them earlier or never."""

    @pytest.fixture(params=[timedelta(hours=1), timedelta(hours=-1)], ids=["forward", "back"])
    def cluster(self, request: pytest.FixtureRequest) -> SteppedCluster:
        return SteppedCluster(request.param)


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
    assert overtaken.requests.count("reorder 2") == 1


def test_a_down_broker_is_restarted_twice_and_then_handed_to_an_operator(cluster: MemoryCluster) -> None:
    cluster.set_modes(restart="act")
    cluster.update_broker(2, fenced=True)
    cluster.open_alert(2, HealthState.BROKER_DOWN)
    outcomes = []
    for _ in range(4):
        step = cluster.take_next_step()
        outcomes.append(step.outcome if step else None)
        cluster.advance(DEFAULT_LIMITS.restart_window)
    assert outcomes == [ActionOutcome.DONE, ActionOutcome.DONE, ActionOutcome.REFUSED, None]
    assert cluster.requests == ["restart", "restart"]
    assert cluster.read_cases()[-1].refused_by == ("exhausted",)


def quarantine_broker_2(cluster: MemoryCluster, mode: str) -> ActionCase:
    """Quarantine broker 2, and let broker 3 die: t has two replicas out of sync of which one is held out."""
    cluster.open_alert(2, HealthState.DEGRADED)
    request = ActionRequest(ActionKind.QUARANTINE_RESTART, "orders", 2, "its disk is slow")
    with cluster.open_executor() as executor:
        case = executor.apply(request, "quarantine", "ann", "its disk is slow")
    assert case.outcome is ActionOutcome.DONE
    cluster.set_modes(quarantine_restart=mode)
    return case


def lose_broker_3(cluster: MemoryCluster) -> None:
    cluster.open_alert(3, HealthState.BROKER_DOWN)
    cluster.update_broker(3, fenced=True)
    for partition, metadata in list(cluster.metadata.partitions.items()):
        cluster.update_partition(partition, in_sync=metadata.in_sync - {3})


def test_a_quarantine_is_released_once_producers_fail_because_of_it(cluster: MemoryCluster) -> None:
    quarantine_broker_2(cluster, "act")
    step = cluster.take_next_step()
    assert step is None or step.case_id != "quarantine"
    lose_broker_3(cluster)
    released = cluster.take_next_step()
    assert released is not None
    assert (released.case_id, released.outcome) == ("quarantine", ActionOutcome.UNDONE)
    assert released.explanations[0] == (
        "released, because producers fail in 3 partitions under min.insync.replicas while broker 2 is kept "
        "out of sync: t-0, t-1, t-2"
    )
    assert cluster.requests[-1] == "remove throttle"
    assert all(2 in metadata.in_sync for metadata in cluster.metadata.partitions.values())
    reported = [case for case in cluster.read_cases() if case.refused_by == ("harmful",)]
    assert [(case.outcome, case.ended) for case in reported] == [(ActionOutcome.ADVISED, None)]
    assert CaseNotification.from_case(reported[0], cluster.now).notification.severity == "page"
    # It is not quarantined again while it is unhealthy.
    for _ in range(5):
        cluster.advance(timedelta(minutes=15))
        cluster.take_next_step()
    assert "throttle" not in " ".join(cluster.requests[cluster.requests.index("remove throttle") + 1 :])


@pytest.mark.parametrize("mode", ["advise", "act"])
def test_harm_that_no_release_may_or_can_end_is_reported_once(cluster: MemoryCluster, mode: str) -> None:
    quarantine_broker_2(cluster, mode)
    lose_broker_3(cluster)
    if mode == "act":
        cluster.update_broker(2, fenced=True)
    first, second = cluster.take_next_step(), cluster.take_next_step()
    assert first is not None
    assert (first.outcome, first.refused_by) == (ActionOutcome.ADVISED, ("harmful",))
    assert second is None or second.refused_by != ("harmful",)
    assert "remove throttle" not in cluster.requests


def test_a_partition_that_is_short_of_replicas_for_another_reason_is_no_harm(cluster: MemoryCluster) -> None:
    """Broker 2 is in sync there, so a release would not help."""
    cluster.idle_partitions = frozenset({TopicPartition("t", 0)})
    quarantine_broker_2(cluster, "act")
    cluster.update_partition(TopicPartition("t", 0), in_sync=frozenset({2}))
    cluster.take_next_step()
    assert "remove throttle" not in cluster.requests


def test_an_undo_that_a_fail_safe_refuses_is_no_step(cluster: MemoryCluster) -> None:
    """The fail-safe arises between the decision and the undo."""

    @dataclass
    class ReassigningCluster(MemoryCluster):
        def observe(self, excluded_case_id: str) -> ClusterSnapshot:
            snapshot = super().observe(excluded_case_id)
            case = self.cases.get(excluded_case_id)
            if case and case.outcome is ActionOutcome.DONE:
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
