"""Corrections and their occurrences."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.corrections import (
    Correction,
    ExcludedRange,
    expand_corrections,
    find_occurrences,
)

BERLIN = "Europe/Berlin"
#: A Sunday; clocks go forward at 01:00 UTC.
CLOCK_CHANGE = datetime(2026, 3, 29, tzinfo=UTC)
NIGHTLY = Correction(
    correction_id="n",
    scope="cluster",
    cluster_id="orders",
    starts=datetime(2026, 3, 27, 21, tzinfo=UTC),
    ends=datetime(2026, 3, 27, 22, 30, tzinfo=UTC),
    recurs="daily",
)


def occurrences(correction: Correction, lo: datetime, days: int) -> list[tuple[datetime, datetime]]:
    return list(find_occurrences(correction, BERLIN, lo, lo + timedelta(days=days)))


def test_a_one_off_correction_occurs_in_every_span_that_it_overlaps() -> None:
    once = replace(NIGHTLY, recurs=None)
    span = (once.starts, once.ends)
    assert occurrences(once, once.starts - timedelta(days=1), 2) == [span]
    assert occurrences(once, once.ends, 1) == []
    assert list(find_occurrences(once, BERLIN, once.starts - timedelta(days=1), once.starts)) == []


def test_a_recurring_correction_keeps_its_local_time_through_a_clock_change() -> None:
    starts = [starts for starts, _ in occurrences(NIGHTLY, CLOCK_CHANGE - timedelta(days=2), 4)]
    assert [f"{at:%d %H:%M}" for at in starts] == ["27 21:00", "28 21:00", "29 20:00", "30 20:00"]
    assert {ends - starts for starts, ends in occurrences(NIGHTLY, CLOCK_CHANGE, 60)} == {
        timedelta(minutes=90)
    }


@pytest.mark.parametrize(
    ("starts", "ends", "hours"),
    [
        # By the clock on the wall from 22 to 06: an hour less when clocks go forward, one more when back.
        ("2026-03-26T22:00+01:00", "2026-03-27T06:00+01:00", [8, 8, 7, 8]),
        ("2026-10-22T22:00+02:00", "2026-10-23T06:00+02:00", [8, 8, 9, 8]),
        # From 02:00 to 03:00, an hour that does not occur on 29 March and occurs twice on 25 October.
        ("2026-03-27T02:00+01:00", "2026-03-27T03:00+01:00", [1, 1, 0, 1]),
        ("2026-10-23T02:00+02:00", "2026-10-23T03:00+02:00", [1, 1, 2, 1]),
    ],
)
def test_a_daily_correction_lasts_by_the_clock_on_the_wall(starts: str, ends: str, hours: list[int]) -> None:
    daily = replace(NIGHTLY, starts=datetime.fromisoformat(starts), ends=datetime.fromisoformat(ends))
    spans = find_occurrences(daily, BERLIN, daily.starts, daily.ends + timedelta(days=3, hours=2))
    assert [(until - since) // timedelta(hours=1) for since, until in spans] == hours


def test_a_weekly_correction_ends_at_recurs_until() -> None:
    weekly = replace(NIGHTLY, recurs="weekly", recurs_until=datetime(2026, 4, 10, tzinfo=UTC))
    assert [starts.day for starts, _ in occurrences(weekly, CLOCK_CHANGE - timedelta(days=9), 90)] == [27, 3]


@given(
    days_after=st.integers(-3, 800),
    length_days=st.integers(1, 9),
    recurs=st.sampled_from(["daily", "weekly"]),
    zone=st.sampled_from([BERLIN, "UTC", "Pacific/Apia", "Australia/Lord_Howe"]),
)
def test_a_span_contains_the_same_occurrences_as_a_search_from_the_first_one(
    days_after: int, length_days: int, recurs: str, zone: str
) -> None:
    correction = replace(NIGHTLY, recurs=recurs)
    lo = correction.starts + timedelta(days=days_after)
    hi = lo + timedelta(days=length_days)
    from_the_start = find_occurrences(correction, zone, correction.starts - timedelta(days=10), hi)
    assert list(find_occurrences(correction, zone, lo, hi)) == [
        span for span in from_the_start if span[1] > lo
    ]


@pytest.mark.parametrize(
    ("correction", "covered"),
    [
        (NIGHTLY, {("orders", None)}),
        (replace(NIGHTLY, scope="broker", broker_id=3), {("orders", 3)}),
        (
            replace(NIGHTLY, scope="segment", cluster_id=None, segment="region", segment_value="eu"),
            {("orders", None), ("search", None)},
        ),
        (replace(NIGHTLY, scope="segment", cluster_id=None, segment="team", segment_value="eu"), set()),
    ],
)
def test_a_correction_excludes_minutes_of_the_clusters_in_its_scope(
    correction: Correction, covered: set[tuple[str, int | None]]
) -> None:
    clusters = {"orders": {("region", "eu")}, "payments": {("region", "us")}, "search": {("region", "eu")}}
    ranges = expand_corrections([correction], clusters, "UTC", correction.starts, correction.ends)
    assert {(excluded.cluster_id, excluded.broker_id) for excluded in ranges} == covered
    assert all(isinstance(excluded, ExcludedRange) for excluded in ranges)
    assert all(excluded.starts == correction.starts for excluded in ranges)
