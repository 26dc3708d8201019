"""The minutes that a batch of records affects; minutes are counted from an arbitrary start."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fleetgauge_core.slo.minute_range import (
    ClusterMinuteBounds,
    MinuteRange,
    ceil_to_minute,
    find_affected_range,
    split_ranges,
)

ZERO = datetime(2026, 3, 2, 10, tzinfo=UTC)
MINUTES = st.integers(0, 30)


def at(minute: int) -> datetime:
    return ZERO + timedelta(minutes=minute)


def number(minute: datetime) -> int:
    return (minute - ZERO) // timedelta(minutes=1)


def bounds(first: int, last: int) -> ClusterMinuteBounds:
    return ClusterMinuteBounds(at(first), at(last), at(first))


def affected_range(
    first: int,
    last: int,
    stored: ClusterMinuteBounds | None = None,
    since: int | None = None,
    until: int | None = None,
    next_record: int | None = None,
) -> MinuteRange | None:
    return find_affected_range(
        "orders",
        at(first),
        at(last),
        stored,
        None if since is None else at(since),
        None if until is None else at(until),
        None if next_record is None else at(next_record),
    )


def test_a_new_cluster_starts_at_its_first_record() -> None:
    assert affected_range(3, 9) == MinuteRange("orders", at(3), at(9))


def test_a_gap_before_new_records_expects_the_brokers_of_the_last_minute() -> None:
    assert affected_range(15, 17, bounds(0, 9)) == MinuteRange("orders", at(10), at(17), expected_from=at(9))


def test_the_next_minute_inherits_the_brokers_of_the_last_minute() -> None:
    assert affected_range(10, 10, bounds(0, 9)) == MinuteRange("orders", at(10), at(10), expected_from=at(9))


def test_a_late_record_affects_every_minute_up_to_the_last_one() -> None:
    assert affected_range(4, 4, bounds(0, 9)) == MinuteRange("orders", at(4), at(9))


def test_a_late_record_affects_no_minute_from_the_next_record_on() -> None:
    assert affected_range(4, 5, bounds(0, 9), next_record=8) == MinuteRange("orders", at(4), at(7))
    assert affected_range(4, 5, bounds(0, 9), next_record=6) == MinuteRange("orders", at(4), at(5))


def test_a_record_before_the_first_minute_affects_the_minutes_up_to_the_first_one() -> None:
    assert affected_range(2, 2, bounds(5, 9), next_record=3) == MinuteRange("orders", at(2), at(5))


def test_late_and_new_records_together_affect_one_range() -> None:
    assert affected_range(4, 12, bounds(0, 9)) == MinuteRange("orders", at(4), at(12))


def test_a_record_before_the_first_one_extends_the_cluster_backwards() -> None:
    assert affected_range(2, 2, bounds(5, 9)) == MinuteRange("orders", at(2), at(9))


def test_since_extends_the_range_before_the_first_record() -> None:
    assert affected_range(5, 6, since=1) == MinuteRange("orders", at(1), at(6), first_record_minute=at(5))


def test_since_applies_again_when_an_earlier_record_becomes_the_first() -> None:
    assert affected_range(4, 4, ClusterMinuteBounds(at(1), at(9), at(6)), since=1) == MinuteRange(
        "orders", at(1), at(9), first_record_minute=at(4)
    )


def test_since_does_not_apply_if_an_earlier_record_exists() -> None:
    assert affected_range(7, 7, ClusterMinuteBounds(at(1), at(9), at(6)), since=1) == MinuteRange(
        "orders", at(7), at(9)
    )


def test_nothing_is_computed_from_until_on() -> None:
    assert affected_range(3, 9, until=7) == MinuteRange("orders", at(3), at(6))
    assert affected_range(7, 9, until=7) is None
    assert affected_range(8, 9, bounds(0, 6), until=7) is None


def test_records_after_until_still_make_the_minutes_before_it_expected() -> None:
    assert affected_range(20, 21, bounds(0, 3), until=7) == MinuteRange(
        "orders", at(4), at(6), expected_from=at(3)
    )


@pytest.mark.parametrize(("seconds", "minute"), [(0, 0), (1, 1), (59.999_999, 1), (60, 1)])
def test_an_instant_is_rounded_up_to_the_next_whole_minute(seconds: float, minute: int) -> None:
    assert ceil_to_minute(ZERO + timedelta(seconds=seconds)) == at(minute)


@given(
    touched=st.tuples(MINUTES, MINUTES).map(sorted),
    stored=st.none() | st.tuples(MINUTES, MINUTES).map(lambda pair: bounds(*sorted(pair))),
    since=st.none() | MINUTES,
    until=st.none() | MINUTES,
)
def test_a_range_contains_the_touched_minutes_and_adjoins_the_stored_ones(
    touched: list[int], stored: ClusterMinuteBounds | None, since: int | None, until: int | None
) -> None:
    if stored and until is not None and stored.last_minute >= at(until):
        return
    affected = affected_range(*touched, stored, since, until)
    inside = [m for m in range(touched[0], touched[1] + 1) if until is None or m < until]
    if affected is None:
        assert not inside
        return
    assert affected.first <= affected.last
    assert until is None or affected.last < at(until)
    assert all(affected.first <= at(m) <= affected.last for m in inside)
    if stored:
        assert affected.last >= stored.last_minute
        assert affected.first <= stored.last_minute + timedelta(minutes=1)
    if affected.expected_from:
        assert affected.expected_from == affected.first - timedelta(minutes=1)
    if affected.first_record_minute:
        assert since is not None
        assert affected.first <= at(since)
        assert affected.first_record_minute == at(touched[0])


@given(
    spans=st.lists(st.tuples(MINUTES, MINUTES).map(sorted), max_size=4),
    at_most=st.integers(1, 12),
)
def test_a_split_contains_every_minute_once_in_periods_of_limited_length(
    spans: list[list[int]], at_most: int
) -> None:
    ranges = [
        MinuteRange(str(n), at(lo), at(hi), expected_from=at(lo - 1), first_record_minute=at(hi))
        for n, (lo, hi) in enumerate(spans)
    ]
    periods = list(split_ranges(ranges, timedelta(minutes=at_most)))
    for whole in ranges:
        parts = [part for period in periods for part in period if part.cluster_id == whole.cluster_id]
        minutes = [m for part in parts for m in range(number(part.first), number(part.last) + 1)]
        assert minutes == list(range(number(whole.first), number(whole.last) + 1))
        assert parts[0].expected_from == whole.expected_from
        assert parts[0].first_record_minute == whole.first_record_minute
        assert all(part.expected_from is None and part.first_record_minute is None for part in parts[1:])
    for period in periods:
        first, last = min(part.first for part in period), max(part.last for part in period)
        assert number(last) - number(first) < at_most


#: The expected brokers by minute.
Records = dict[int, frozenset[int]]


def _expected_brokers(records: Records, affected: MinuteRange, silver: Records) -> Records:
    """Return the brokers that each minute of a range expects."""
    latest = silver[number(affected.expected_from)] if affected.expected_from else None
    if affected.first_record_minute:
        latest = records[number(affected.first_record_minute)]
    expected: Records = {}
    for minute in range(number(affected.first), number(affected.last) + 1):
        latest = records.get(minute, latest)
        assert latest is not None
        expected[minute] = latest
    return expected


def _fold_batches(batches: list[Records], since: int | None, until: int | None) -> Records:
    bronze: Records = {}
    silver: Records = {}
    for batch in batches:
        bronze |= batch
        counted = [m for m in bronze if m not in batch and (until is None or m < until)]
        stored = ClusterMinuteBounds(at(min(silver)), at(max(silver)), at(min(counted))) if silver else None
        affected = affected_range(min(batch), max(batch), stored, since, until)
        if affected:
            silver |= _expected_brokers(bronze, affected, silver)
    return silver


@given(
    records=st.dictionaries(st.integers(5, 25), st.frozensets(st.integers(1, 4), min_size=1), min_size=1),
    since=st.none() | st.integers(0, 5),
    until=st.none() | st.integers(6, 30),
    data=st.data(),
)
def test_batches_in_any_order_give_the_same_result_as_one_batch(
    records: Records, since: int | None, until: int | None, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(sorted(records)))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(order)), max_size=4)) | {len(order)})
    batches = [{m: records[m] for m in order[a:b]} for a, b in zip([0, *cuts], cuts, strict=False)]
    # A cluster whose first record is at or after `until` has no minutes.
    assume(until is None or min(batches[0]) < until)
    assert _fold_batches(batches, since, until) == _fold_batches([records], since, until)
