"""What is told of conditions that come, stay and go."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.readiness.plan.conditions import Condition, Kind, Whom
from fleetgauge_operations.recovery.readiness.plan.findings import Findings, fingerprint

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
STALE = Condition(Whom(Kind.MIRROR_STALE, "north", "south-all"), "it stands still")
LOOP = Condition(Whom(Kind.MIRROR_LOOP, "north"), "round and round")


def told(of: Findings, *rounds: Sequence[Condition]) -> list[str]:
    """A letter a round: what opened, what is over, or nothing."""
    found = []
    for number, conditions in enumerate(rounds):
        said = of.judge(conditions, NOON + timedelta(seconds=30 * number))
        found.append("".join("o" if one.opens else "x" for one in said) or ".")
    return found


def test_what_lasts_is_told_once_and_its_end_once() -> None:
    of = Findings()
    assert told(of, [STALE], [STALE], [STALE], [], [], [], []) == [".", "o", ".", ".", "x", ".", "."]
    assert of.opened == ()


def test_what_is_there_for_a_moment_is_not_told() -> None:
    assert told(Findings(), [STALE], [], [STALE], [], []) == ["."] * 5


def test_what_is_gone_for_a_moment_is_not_over() -> None:
    of = Findings()
    assert told(of, [STALE], [STALE], [], [STALE], [], [STALE]) == [".", "o", ".", ".", ".", "."]
    assert of.opened == (STALE,)


def test_one_tracer_that_comes_back_is_enough() -> None:
    assert told(Findings(), [LOOP], [], []) == ["o", ".", "x"]


def test_the_next_process_goes_on_where_this_one_ended() -> None:
    assert told(Findings([STALE]), [STALE], [], []) == [".", ".", "x"]
    assert told(Findings([STALE]), [], []) == [".", "x"]


def test_the_words_may_change_and_the_key_does_not() -> None:
    later = Condition(STALE.whom, "it stands still, for longer")
    of = Findings([STALE])
    assert told(of, [later]) == ["."]
    assert of.opened == (later,)
    kinds = {fingerprint(STALE.whom), fingerprint(LOOP.whom), fingerprint(STALE.whom._replace(other="x"))}
    assert len(kinds) == 3


@given(st.lists(st.booleans(), max_size=60))
def test_ends_and_beginnings_alternate_and_follow_what_is_there(there: list[bool]) -> None:
    said = told(Findings(), *([STALE] if one else [] for one in there))
    changes = [one for one in said if one != "."]
    assert changes == ["o", "x"] * (len(changes) // 2) + ["o"] * (len(changes) % 2)
    for number, one in enumerate(said):
        if one == "o":
            assert there[number - 1 : number + 1] == [True, True]
        if one == "x":
            assert there[number - 1 : number + 1] == [False, False]
