from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.revisions import (
    CLOSED,
    LATE_RECORDS,
    OPEN,
    latest,
    revisions,
)

CONTENT = ["p99", "coverage"]
Row = dict[str, Any]
COMPUTED = st.fixed_dictionaries(
    {"p99": st.none() | st.integers(0, 3), "coverage": st.sampled_from([0.5, 1.0]), "closed": st.booleans()}
)


def row(p99: int | None, closed: bool, computed_at: int = 0) -> Row:
    return {"p99": p99, "coverage": 1.0, "closed": closed, "computed_at": computed_at}


def _numbers(rows: list[Any]) -> list[int]:
    return [one["revision"] for one in rows]


def test_an_open_week_is_revision_0_and_overwritten() -> None:
    first = revisions(row(1, False), [], CONTENT)
    second = revisions(row(2, False), first, CONTENT)
    assert second == [row(2, False) | {"revision": OPEN, "revision_reason": None}]


def test_closing_makes_revision_1_and_revision_0_goes() -> None:
    opened = revisions(row(1, False), [], CONTENT)
    assert revisions(row(1, True), opened, CONTENT) == [
        row(1, True) | {"revision": 1, "revision_reason": CLOSED}
    ]


def test_a_week_that_is_first_seen_closed_starts_with_revision_1() -> None:
    assert _numbers(revisions(row(1, True), [], CONTENT)) == [1]


def test_late_records_make_the_next_revision_and_leave_the_old_ones_alone() -> None:
    closed = revisions(row(1, True), [], CONTENT)
    revised = revisions(row(2, True), closed, CONTENT)
    assert revised[:-1] == closed
    assert (revised[-1]["revision"], revised[-1]["revision_reason"]) == (2, LATE_RECORDS)


def test_a_week_computed_the_same_makes_no_revision_whenever_it_was_computed() -> None:
    closed = revisions(row(1, True), [], CONTENT)
    assert revisions(row(1, True, computed_at=9), closed, CONTENT) == closed


def test_a_return_to_an_earlier_value_is_a_revision_of_its_own() -> None:
    rows: list[Any] = []
    for p99 in (1, 2, 1):
        rows = revisions(row(p99, True), rows, CONTENT)
    assert [(one["revision"], one["p99"]) for one in rows] == [(1, 1), (2, 2), (3, 1)]


def test_a_clock_that_is_set_back_does_not_open_a_closed_week() -> None:
    closed = revisions(row(1, True), [], CONTENT)
    revised = revisions(row(2, False), closed, CONTENT)
    assert _numbers(revised) == [1, 2]
    assert all(one["closed"] for one in revised)


def test_a_leftover_revision_0_goes_when_the_week_is_computed_again() -> None:
    opened = revisions(row(1, False), [], CONTENT)
    closed = revisions(row(1, True), [], CONTENT)
    assert revisions(row(1, True), [*opened, *closed], CONTENT) == closed


@given(st.lists(COMPUTED, min_size=1, max_size=12), st.randoms())
def test_any_history_leaves_contiguous_revisions_that_nobody_rewrites(
    history: list[Row], random: Any
) -> None:
    rows: list[Any] = []
    closed = False
    for computed in history:
        before = [one for one in rows if one["revision"] > OPEN]
        random.shuffle(rows)
        rows = revisions(computed, rows, CONTENT)
        closed = closed or computed["closed"]
        assert rows == revisions(computed, rows, CONTENT)
        assert _numbers(rows) == (list(range(1, len(rows) + 1)) if closed else [OPEN])
        assert all(one["closed"] == closed for one in rows)
        assert rows[: len(before)] == before
        assert all(rows[-1][name] == computed[name] for name in CONTENT)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), unique=True).map(
        lambda pairs: [{"week": week, "revision": revision} for week, revision in pairs]
    )
)
def test_the_latest_is_the_highest_revision_of_each_key(rows: list[Row]) -> None:
    found = latest(rows, ["week"])
    weeks = [one["week"] for one in found]
    assert len(weeks) == len(set(weeks))
    assert {one["week"]: one["revision"] for one in found} == {
        week: max(one["revision"] for one in rows if one["week"] == week)
        for week in {r["week"] for r in rows}
    }
