"""What two clusters have of the same sources."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Mirror, Recovery, Tracers
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Origin, Route
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.plan.replica_comparison import (
    Comparison,
    Copied,
    compared,
    end_at,
)
from tests.unit.operations.recovery.known import IDS, known
from tests.unit.operations.recovery.primaries.sights import NOW_MS, PAIR, RECOVERY, sight, sights


def of_north(found: Known, recovery: Recovery = RECOVERY) -> Comparison:
    every = compared(PAIR, recovery, found, NOW_MS, 300)
    (one,) = [one for one in every if one.source == "north"]
    return one


def test_what_both_have_got_since_the_window_began_is_counted() -> None:
    found = of_north(sights(in_north=500, in_south=460, end=500, began=100))
    assert found.active == Copied(500, 400, 0.0)
    assert found.passive == Copied(460, 360, 1.0)
    assert (found.apart, found.silent_s) == (40, 1.0)


def test_what_one_lacks_of_before_the_window_keeps_them_apart_too() -> None:
    found = of_north(sights(in_north=150, in_south=20, end=500, began=100))
    assert found.active == Copied(150, 50, 1.0)
    assert found.passive == Copied(20, 0, 1.0)
    assert found.apart == 130


def test_nobody_knows_how_many_came_since_if_nobody_looked_then() -> None:
    found = of_north(sights(in_south=460, began=None))
    assert found.active == Copied(500, None, 0.0)
    assert found.apart == 40


def test_a_topic_that_is_not_there_yet_is_lacking_as_a_whole() -> None:
    found = sight(Known(), "north", "north-all", 70, 70)
    assert of_north(found).apart is None
    found.look("north", "south-all", NOW_MS - 31_000)
    assert of_north(found).apart is None
    found.look("north", "south-all", NOW_MS - 29_000)
    assert (of_north(found).apart, of_north(found).silent_s) == (70, 29.0)


def test_a_topic_that_one_mirror_leaves_out_is_not_compared() -> None:
    mirrors = tuple(
        replaced(one, "payments") if one.destination == "south-all" else one for one in RECOVERY.mirrors
    )
    recovery = RECOVERY.model_copy(update={"mirrors": mirrors})
    assert compared(PAIR, recovery, sights(), NOW_MS, 300) == []


def replaced(mirror: Mirror, topics: str) -> Mirror:
    return mirror.model_copy(update={"topics": topics})


def test_our_own_tracers_are_not_compared() -> None:
    recovery = RECOVERY.model_copy(update={"tracers": Tracers(topic="orders")})
    assert compared(PAIR, recovery, sights(), NOW_MS, 300) == []


def test_a_topic_that_is_another_one_to_one_of_them_cannot_be_compared() -> None:
    found = sight(Known(), "north", "north-all", 70, 70)
    sight(found, "north", "south-all", 70, 70, source_id="another")
    assert of_north(found) == Comparison("north", "orders", 0, None, None)


def test_a_copy_is_compared_with_its_original() -> None:
    found = sight(Known(), "north", "south", copied=460, end=500, began=100)
    recovery = Recovery(mirrors=(Mirror(source="north", destination="south"),))
    assert compared(Pair("north", "south"), recovery, found, NOW_MS, 300) == [
        Comparison("north", "orders", 0, Copied(500, 400, 0.0), Copied(460, 360, 1.0))
    ]


def test_of_what_was_looked_at_and_never_told_of_nobody_knows_since_when() -> None:
    found = Known()
    for aggregate in ("north-all", "south-all"):
        found.learn(Route("north", aggregate, "orders", 0), IDS, Checkpoint(9, 0, NOW_MS, Origin.FENCE))
    one = of_north(found)
    assert (one.apart, one.silent_s) == (0, None)
    assert replace(one, active=None).apart is None


@pytest.mark.parametrize(
    ("at_ms", "end"),
    [(999, None), (1_000, 10), (1_999, 10), (2_000, 20), (2_500, 20), (3_000, 1_000), (9_000, 1_000)],
)
def test_the_end_of_a_source_is_as_it_was_seen_last_by_then(at_ms: int, end: int | None) -> None:
    history = known()
    for src, at in ((10, 1_000), (20, 2_000), (1_000, 3_000)):
        history.append(Checkpoint(src, 0, at, Origin.FENCE))
    assert end_at(history, at_ms) == end


def test_a_source_at_which_nobody_looked_has_no_end() -> None:
    assert end_at(known([(1, 1)]), 9_000) is None


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=12), st.integers(0, 600))
def test_it_is_the_last_of_all_looks_until_then(steps: list[tuple[int, int]], at_ms: int) -> None:
    history, src, at, seen = known(), 0, 0, []
    for more, later in steps:
        src, at = src + more, at + later
        history.append(Checkpoint(src, 0, at, Origin.FENCE))
        seen.append((src, at))
    until = [end for end, looked_ms in seen if looked_ms <= at_ms]
    assert end_at(history, at_ms) == (until[-1] if until else None)
