"""Revisions of a week."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.revisions import (
    CLOSED,
    LATE_RECORDS,
    OPEN,
    build_revisions,
    find_latest_revisions,
)

CONTENT = ["p99", "coverage"]
WeekColumns = dict[str, Any]
COMPUTED = st.fixed_dictionaries(
    {"p99": st.none() | st.integers(0, 3), "coverage": st.sampled_from([0.5, 1.0]), "closed": st.booleans()}
)


def row(p99: int | None, closed: bool, computed_at: int = 0) -> WeekColumns:
    return {"p99": p99, "coverage": 1.0, "closed": closed, "computed_at": computed_at}


def _revisions(rows: list[Any]) -> list[int]:
    return [row["revision"] for row in rows]


def test_an_open_week_is_revision_0_and_is_overwritten() -> None:
    opened = build_revisions(row(1, False), [], CONTENT)
    updated = build_revisions(row(2, False), opened, CONTENT)
    assert updated == [row(2, False) | {"revision": OPEN, "revision_reason": None}]


def test_closing_a_week_replaces_revision_0_by_revision_1() -> None:
    opened = build_revisions(row(1, False), [], CONTENT)
    assert build_revisions(row(1, True), opened, CONTENT) == [
        row(1, True) | {"revision": 1, "revision_reason": CLOSED}
    ]


def test_a_week_first_computed_after_closing_starts_with_revision_1() -> None:
    assert _revisions(build_revisions(row(1, True), [], CONTENT)) == [1]


def test_late_records_add_a_revision_and_keep_the_earlier_ones() -> None:
    closed = build_revisions(row(1, True), [], CONTENT)
    revised = build_revisions(row(2, True), closed, CONTENT)
    assert revised[:-1] == closed
    assert (revised[-1]["revision"], revised[-1]["revision_reason"]) == (2, LATE_RECORDS)


def test_an_unchanged_week_computed_later_adds_no_revision() -> None:
    closed = build_revisions(row(1, True), [], CONTENT)
    assert build_revisions(row(1, True, computed_at=9), closed, CONTENT) == closed


def test_a_return_to_an_earlier_value_adds_a_revision() -> None:
    rows: list[Any] = []
    for p99 in (1, 2, 1):
        rows = build_revisions(row(p99, True), rows, CONTENT)
    assert [(revision["revision"], revision["p99"]) for revision in rows] == [(1, 1), (2, 2), (3, 1)]


def test_a_clock_set_back_does_not_reopen_a_closed_week() -> None:
    closed = build_revisions(row(1, True), [], CONTENT)
    revised = build_revisions(row(2, False), closed, CONTENT)
    assert _revisions(revised) == [1, 2]
    assert all(revision["closed"] for revision in revised)


def test_a_leftover_revision_0_is_removed_when_the_week_is_recomputed() -> None:
    opened = build_revisions(row(1, False), [], CONTENT)
    closed = build_revisions(row(1, True), [], CONTENT)
    assert build_revisions(row(1, True), [*opened, *closed], CONTENT) == closed


@given(st.lists(COMPUTED, min_size=1, max_size=12), st.randoms())
def test_revisions_are_contiguous_and_never_rewritten(history: list[WeekColumns], random: Any) -> None:
    rows: list[Any] = []
    closed = False
    for computed in history:
        before = [revision for revision in rows if revision["revision"] > OPEN]
        random.shuffle(rows)
        rows = build_revisions(computed, rows, CONTENT)
        closed = closed or computed["closed"]
        assert rows == build_revisions(computed, rows, CONTENT)
        assert _revisions(rows) == (list(range(1, len(rows) + 1)) if closed else [OPEN])
        assert all(revision["closed"] == closed for revision in rows)
        assert rows[: len(before)] == before
        assert all(rows[-1][name] == computed[name] for name in CONTENT)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), unique=True).map(
        lambda pairs: [{"week": week, "revision": revision} for week, revision in pairs]
    )
)
def test_the_latest_revision_of_each_key_is_its_highest(rows: list[WeekColumns]) -> None:
    latest = find_latest_revisions(rows, ["week"])
    weeks = [revision["week"] for revision in latest]
    assert len(weeks) == len(set(weeks))
    assert {revision["week"]: revision["revision"] for revision in latest} == {
        week: max(revision["revision"] for revision in rows if revision["week"] == week)
        for week in {revision["week"] for revision in rows}
    }
