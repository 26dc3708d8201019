"""The kernel with a kind of action of its own: it knows nothing of demotions and restarts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.executor import ActionExecutor, ActionFailedError, ActionRun
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import RefusalReason
from fleetgauge_operations.actions.plan.refusals import find_refusals
from fleetgauge_operations.actions.plan.rules import ActionLimits, ActionRules, RateLimit
from tests.unit.operations.mitigation.simulated_cluster import NOON, SimulatedCluster, degraded_alert

HOUR = timedelta(hours=1)
MOVE = ActionKind.REASSIGNMENT
REQUEST = ActionRequest(MOVE, "orders", 2)
LIMITS = ActionLimits(
    warrants={HealthState.DEGRADED: timedelta(0)},
    paced_with=frozenset({MOVE}),
    min_interval=HOUR,
    rate_limits=(RateLimit(frozenset({MOVE}), 2, timedelta(days=1), "moves of replicas"),),
)


def make_plan(metadata: ClusterMetadata, broker_id: int) -> Mapping[str, Any]:
    return {"moved": sorted(partition.partition for partition in metadata.replicated_on(broker_id))}


RULES = ActionRules(
    LIMITS,
    has_lasting_effect=True,
    describe_effect=lambda *_: "its replicas move",
    describe_undo=lambda *_: "its replicas move back",
    make_plan=make_plan,
)


@dataclass
class MoveSteps:
    """Moves that take a minute for each partition."""

    moved: list[int] = field(default_factory=list)
    fails_at: int | None = None

    def apply(self, run: ActionRun) -> None:
        for partition in run.case.plan["moved"]:
            run.require_leadership()
            if partition == self.fails_at:
                raise ActionFailedError(f"partition {partition} cannot be moved")
            self.moved.append(partition)
            run.wait(60)

    def undo(self, run: ActionRun) -> None:
        self.moved.clear()
        run.explain("moved back")

    def clean_up(self, run: ActionRun) -> None:
        self.moved.clear()


def create_executor(cluster: SimulatedCluster, steps: MoveSteps) -> ActionExecutor:
    return replace(cluster.create_executor(), rules={MOVE: RULES}, steps={MOVE: steps})


@pytest.fixture
def cluster() -> SimulatedCluster:
    return SimulatedCluster(alerts=(degraded_alert(2),))


def test_a_long_action_on_many_partitions_is_one_case_that_can_be_undone(cluster: SimulatedCluster) -> None:
    steps = MoveSteps()
    case = create_executor(cluster, steps).apply(REQUEST, "c1", "ann", "DEGRADED")
    assert (case.outcome, case.ended, case.plan) == (ActionOutcome.DONE, None, {"moved": [0, 1, 2]})
    assert (steps.moved, cluster.now) == ([0, 1, 2], NOON + timedelta(minutes=3))
    assert list(cluster.cases) == ["c1"]
    undone = create_executor(cluster, steps).undo(case, "no longer needed")
    assert (undone.outcome, undone.explanations) == (
        ActionOutcome.UNDONE,
        ("undone: no longer needed", "moved back"),
    )
    assert steps.moved == []


def test_a_step_that_fails_fails_the_case_with_its_reason(cluster: SimulatedCluster) -> None:
    case = create_executor(cluster, MoveSteps(fails_at=1)).apply(REQUEST, "c1", "ann", "DEGRADED")
    assert (case.outcome, case.explanations) == (ActionOutcome.FAILED, ("partition 1 cannot be moved",))


def test_limits_count_actions_of_their_own_kinds_only(cluster: SimulatedCluster) -> None:
    demotions = [
        ActionCase(
            f"d{hours}",
            ActionKind.DEMOTE,
            "orders",
            2,
            None,
            "ann",
            "DEGRADED",
            NOON - hours * HOUR / 2,
            ActionOutcome.UNDONE,
            ended=NOON,
        )
        for hours in range(1, 6)
    ]

    def reasons(*cases: ActionCase) -> list[RefusalReason]:
        snapshot = replace(cluster.observe(""), cases=cases)
        return [refusal.reason for refusal in find_refusals(REQUEST, snapshot, NOON, RULES)]

    moves = [replace(case, kind=MOVE) for case in demotions]
    assert reasons(*demotions) == []
    assert reasons(*demotions, moves[2]) == []
    assert reasons(*demotions, moves[0]) == [RefusalReason.TOO_SOON]
    assert reasons(moves[2], moves[3]) == [RefusalReason.TOO_MANY]
    assert reasons(moves[0], moves[3]) == [RefusalReason.TOO_SOON, RefusalReason.TOO_MANY]
