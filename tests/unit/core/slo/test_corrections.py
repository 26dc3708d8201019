from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.corrections import (
    Correction,
    Excluded,
    excluded,
    occurrences,
)

BERLIN = "Europe/Berlin"
#: A Sunday; clocks go forward at 01:00 UTC.
CHANGE = datetime(2026, 3, 29, tzinfo=UTC)
NIGHTLY = Correction(
    correction_id="n",
    scope="cluster",
    cluster_id="orders",
    starts=datetime(2026, 3, 27, 21, tzinfo=UTC),
    ends=datetime(2026, 3, 27, 22, 30, tzinfo=UTC),
    recurs="daily",
)


def within(one: Correction, lo: datetime, days: int) -> list[tuple[datetime, datetime]]:
    return list(occurrences(one, BERLIN, lo, lo + timedelta(days=days)))


def test_what_happens_once_meets_the_spans_that_it_overlaps() -> None:
    once = replace(NIGHTLY, recurs=None)
    span = (once.starts, once.ends)
    assert within(once, once.starts - timedelta(days=1), 2) == [span]
    assert within(once, once.ends, 1) == []
    assert list(occurrences(once, BERLIN, once.starts - timedelta(days=1), once.starts)) == []


def test_what_recurs_does_so_at_the_same_local_time_through_a_clock_change() -> None:
    starts = [starts for starts, _ in within(NIGHTLY, CHANGE - timedelta(days=2), 4)]
    assert [f"{at:%d %H:%M}" for at in starts] == ["27 21:00", "28 21:00", "29 20:00", "30 20:00"]
    assert {ends - starts for starts, ends in within(NIGHTLY, CHANGE, 60)} == {timedelta(minutes=90)}


def test_it_ends_when_it_was_said_to_and_a_week_has_seven_days() -> None:
    weekly = replace(NIGHTLY, recurs="weekly", recurs_until=datetime(2026, 4, 10, tzinfo=UTC))
    assert [starts.day for starts, _ in within(weekly, CHANGE - timedelta(days=9), 90)] == [27, 3]


@given(
    days_after=st.integers(-3, 800),
    length_days=st.integers(1, 9),
    recurs=st.sampled_from(["daily", "weekly"]),
    zone=st.sampled_from([BERLIN, "UTC", "Pacific/Apia", "Australia/Lord_Howe"]),
)
def test_a_window_holds_what_a_walk_from_the_first_occurrence_meets(
    days_after: int, length_days: int, recurs: str, zone: str
) -> None:
    one = replace(NIGHTLY, recurs=recurs)
    lo = one.starts + timedelta(days=days_after)
    hi = lo + timedelta(days=length_days)
    from_the_start = occurrences(one, zone, one.starts - timedelta(days=10), hi)
    assert list(occurrences(one, zone, lo, hi)) == [span for span in from_the_start if span[1] > lo]


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
def test_each_scope_covers_its_clusters(correction: Correction, covered: set[tuple[str, int | None]]) -> None:
    clusters = {"orders": {("region", "eu")}, "payments": {("region", "us")}, "search": {("region", "eu")}}
    found = excluded([correction], clusters, "UTC", correction.starts, correction.ends)
    assert {(one.cluster_id, one.broker_id) for one in found} == covered
    assert all(isinstance(one, Excluded) and one.starts == correction.starts for one in found)
