"""The execution and verification of a promotion, and its output."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease, PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.plan.primary_state import (
    PrimaryFinding,
    PrimaryFindingKind,
    PrimaryState,
)
from fleetgauge_operations.recovery.primaries.plan.promotion import (
    Precondition,
    PreconditionName,
    PromotionPlan,
)
from fleetgauge_operations.recovery.primaries.promote_output import format_promotion, promotion_document
from fleetgauge_operations.recovery.primaries.promotion_executor import (
    PromotionExecutor,
    PromotionOutcome,
    PromotionResult,
)
from tests.unit.operations.recovery.primaries.replication_states import PAIR

ALL_MET = tuple(Precondition(name, True, "met") for name in PreconditionName)
NORTH_LEASE, SOUTH_LEASE = PrimaryLease("billing", "north", 3), PrimaryLease("billing", "south", 4)
CONFLICTING = PrimaryState(
    "billing",
    (SOUTH_LEASE, NORTH_LEASE),
    None,
    PrimaryFinding(PrimaryFindingKind.PRIMARY_TWO, "billing", "2 conflicting leases"),
)


def build_primary_state(lease: PrimaryLease) -> PrimaryState:
    return PrimaryState("billing", (lease,), lease, None)


@dataclass
class SimulatedPromotion:
    """A promotion whose lease states are read in order, the last one repeatedly.

    Time passes only while the executor waits.
    """

    preconditions: tuple[Precondition, ...] = ALL_MET
    states: Iterable[PrimaryState | str] = (build_primary_state(SOUTH_LEASE),)
    command_error: str = ""
    promoted: list[int] = field(default_factory=list)
    waited_s: float = 0.0

    def __post_init__(self) -> None:
        self.remaining_states = list(self.states)

    def plan(self) -> PromotionPlan:
        return PromotionPlan("billing", PAIR, 4, self.preconditions)

    def read_primary_state(self) -> PrimaryState:
        state = self.remaining_states.pop(0) if len(self.remaining_states) > 1 else self.remaining_states[0]
        if isinstance(state, str):
            raise PrimaryLeaseError(state)
        return state

    def is_target(self, primary: str) -> bool:
        return primary in ("south", "south-all")

    def promote(self, epoch: int) -> None:
        self.promoted.append(epoch)
        if self.command_error:
            raise CommandError(self.command_error)

    def wait(self, pause_s: float) -> None:
        self.waited_s += pause_s

    def run(self, execute: bool = True, despite: Iterable[str] = ()) -> tuple[PromotionOutcome, str]:
        result = PromotionExecutor(self, lambda: self.waited_s, self.wait).run(execute, frozenset(despite))
        assert result.is_success == (result.outcome in (PromotionOutcome.DRY_RUN, PromotionOutcome.PROMOTED))
        return result.outcome, result.message


def test_a_dry_run_changes_nothing() -> None:
    promotion = SimulatedPromotion()
    assert promotion.run(execute=False) == (PromotionOutcome.DRY_RUN, "dry run: promote with --execute")
    assert promotion.promoted == []


@pytest.mark.parametrize("execute", [True, False])
@pytest.mark.parametrize("holds", [False, None])
def test_unmet_preconditions_refuse_the_promotion_unless_overridden(
    execute: bool, holds: bool | None
) -> None:
    promotion = SimulatedPromotion(
        (
            Precondition(PreconditionName.GROUPS, holds, "groups are not ready"),
            *ALL_MET[:3],
            Precondition(PreconditionName.HEADROOM, None, ""),
        )
    )
    outcome, message = promotion.run(execute, despite=["headroom"])
    assert (outcome, promotion.promoted) == (PromotionOutcome.REFUSED, [])
    assert message.startswith("preconditions not met: groups: ")
    outcome, _ = promotion.run(execute, despite=["headroom", "groups"])
    assert (outcome, promotion.promoted) == (
        (PromotionOutcome.PROMOTED, [4]) if execute else (PromotionOutcome.DRY_RUN, [])
    )


def test_a_promotion_succeeds_once_the_leases_confirm_it() -> None:
    promotion = SimulatedPromotion(
        states=(
            build_primary_state(NORTH_LEASE),
            CONFLICTING,
            "labels exited with 1: busy",
            build_primary_state(SOUTH_LEASE),
        )
    )
    message = "the primary is now south at epoch 4, without expiry"
    assert promotion.run() == (PromotionOutcome.PROMOTED, message)
    assert (promotion.promoted, promotion.waited_s) == ([4], 3.0)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (build_primary_state(NORTH_LEASE), "the primary is now north at epoch 3, without expiry"),
        (CONFLICTING, "2 conflicting leases"),
        ("labels exited with 1: busy", "the current primary is unknown: labels exited with 1: busy"),
        (
            build_primary_state(PrimaryLease("billing", "south", 3)),
            "the primary is now south at epoch 3, without expiry",
        ),
    ],
)
def test_a_promotion_fails_if_the_leases_do_not_confirm_it_within_a_minute(
    state: PrimaryState | str, message: str
) -> None:
    promotion = SimulatedPromotion(states=(state,))
    assert promotion.run() == (
        PromotionOutcome.FAILED,
        f"not promoted 60 s after the command ended: {message}",
    )
    assert promotion.waited_s == 60


def test_a_lease_without_an_epoch_confirms_the_promotion() -> None:
    assert (
        SimulatedPromotion(states=(build_primary_state(PrimaryLease("billing", "south-all")),)).run()[0]
        is PromotionOutcome.PROMOTED
    )


def test_a_failing_command_fails_the_promotion_whatever_the_leases_state() -> None:
    promotion = SimulatedPromotion(command_error="labels exited with 1: lost the race")
    message = "labels exited with 1: lost the race; the primary is now south at epoch 4, without expiry"
    assert promotion.run() == (PromotionOutcome.FAILED, message)
    assert promotion.waited_s == 0


def test_text_and_json_output_agree() -> None:
    preconditions = (
        Precondition(PreconditionName.LABEL, True, "north"),
        Precondition(PreconditionName.INPUT_LAG, False, "at most 9"),
        Precondition(PreconditionName.HEADROOM, None, "no capacity"),
    )
    result = PromotionResult(
        PromotionPlan("billing", PAIR, 4, preconditions),
        PromotionOutcome.REFUSED,
        "preconditions not met: input_lag",
    )
    assert list(format_promotion(result, ["headroom"])) == [
        "label: MET: north",
        "input_lag: NOT MET: at most 9",
        "headroom: UNKNOWN, overridden by --despite: no capacity",
        "billing: north-all to south-all: REFUSED: preconditions not met: input_lag",
    ]
    assert promotion_document(result, ["headroom"], "ada") == {
        "service": "billing",
        "from": "north-all",
        "to": "south-all",
        "epoch": 4,
        "author": "ada",
        "despite": ["headroom"],
        "allowed": False,
        "outcome": "REFUSED",
        "words": "preconditions not met: input_lag",
        "preconditions": [
            {"name": "label", "holds": True, "words": "north"},
            {"name": "input_lag", "holds": False, "words": "at most 9"},
            {"name": "headroom", "holds": None, "words": "no capacity"},
        ],
    }
