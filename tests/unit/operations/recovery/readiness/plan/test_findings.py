"""Findings opened and closed by conditions over several evaluations."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    ReadinessCondition,
)
from fleetgauge_operations.recovery.readiness.plan.findings import FindingTracker, fingerprint_condition

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
STALE = ReadinessCondition(
    ConditionKey(ConditionKind.MIRROR_STALE, "north", "south-all"), "it makes no progress"
)
LOOP = ReadinessCondition(
    ConditionKey(ConditionKind.MIRROR_LOOP, "north"), "records are replicated in a loop"
)


def evaluate_rounds(tracker: FindingTracker, *rounds: Sequence[ReadinessCondition]) -> list[str]:
    """Return a letter per round: o if a finding opened, x if it closed, or a dot."""
    letters = []
    for number, conditions in enumerate(rounds):
        findings = tracker.evaluate(conditions, NOON + timedelta(seconds=30 * number))
        letters.append("".join("o" if finding.opens else "x" for finding in findings) or ".")
    return letters


def test_a_lasting_condition_opens_and_closes_one_finding() -> None:
    tracker = FindingTracker()
    assert evaluate_rounds(tracker, [STALE], [STALE], [STALE], [], [], [], []) == [
        ".",
        "o",
        ".",
        ".",
        "x",
        ".",
        ".",
    ]
    assert tracker.opened == ()


def test_a_momentary_condition_opens_no_finding() -> None:
    assert evaluate_rounds(FindingTracker(), [STALE], [], [STALE], [], []) == ["."] * 5


def test_a_momentary_absence_does_not_close_a_finding() -> None:
    tracker = FindingTracker()
    assert evaluate_rounds(tracker, [STALE], [STALE], [], [STALE], [], [STALE]) == [
        ".",
        "o",
        ".",
        ".",
        ".",
        ".",
    ]
    assert tracker.opened == (STALE,)


def test_a_single_returned_tracer_opens_a_loop_finding() -> None:
    assert evaluate_rounds(FindingTracker(), [LOOP], [], []) == ["o", ".", "x"]


def test_open_findings_continue_in_the_next_process() -> None:
    assert evaluate_rounds(FindingTracker([STALE]), [STALE], [], []) == [".", ".", "x"]
    assert evaluate_rounds(FindingTracker([STALE]), [], []) == [".", "x"]


def test_the_fingerprint_depends_on_the_key_only() -> None:
    later = ReadinessCondition(STALE.key, "it makes no progress, for longer")
    tracker = FindingTracker([STALE])
    assert evaluate_rounds(tracker, [later]) == ["."]
    assert tracker.opened == (later,)
    kinds = {
        fingerprint_condition(STALE.key),
        fingerprint_condition(LOOP.key),
        fingerprint_condition(STALE.key._replace(other="x")),
    }
    assert len(kinds) == 3


@given(st.lists(st.booleans(), max_size=60))
def test_openings_and_closings_alternate_and_follow_the_condition(present: list[bool]) -> None:
    letters = evaluate_rounds(FindingTracker(), *([STALE] if is_present else [] for is_present in present))
    changes = [letter for letter in letters if letter != "."]
    assert changes == ["o", "x"] * (len(changes) // 2) + ["o"] * (len(changes) % 2)
    for number, letter in enumerate(letters):
        if letter == "o":
            assert present[number - 1 : number + 1] == [True, True]
        if letter == "x":
            assert present[number - 1 : number + 1] == [False, False]
