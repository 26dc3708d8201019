"""Minutes are numbers here, counted from an arbitrary one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fleetgauge_core.slo.minute_range import (
    Horizon,
    Stretch,
    first_minute,
    pieces,
    stretch,
)

ZERO = datetime(2026, 3, 2, 10, tzinfo=UTC)
MINUTES = st.integers(0, 30)


def at(minute: int) -> datetime:
    return ZERO + timedelta(minutes=minute)


def number(minute: datetime) -> int:
    return (minute - ZERO) // timedelta(minutes=1)


def horizon(begin: int, watermark: int) -> Horizon:
    return Horizon(at(begin), at(watermark), at(begin))


def ask(
    lo: int,
    hi: int,
    known: Horizon | None = None,
    since: int | None = None,
    until: int | None = None,
    next_record: int | None = None,
) -> Stretch | None:
    return stretch(
        "orders",
        at(lo),
        at(hi),
        known,
        None if since is None else at(since),
        None if until is None else at(until),
        None if next_record is None else at(next_record),
    )


def test_a_new_cluster_starts_at_its_first_record() -> None:
    assert ask(3, 9) == Stretch("orders", at(3), at(9))


def test_records_ahead_fill_the_gap_with_the_brokers_last_known() -> None:
    assert ask(15, 17, horizon(0, 9)) == Stretch("orders", at(10), at(17), carried_from=at(9))


def test_the_next_minute_carries_on_from_the_watermark() -> None:
    assert ask(10, 10, horizon(0, 9)) == Stretch("orders", at(10), at(10), carried_from=at(9))


def test_a_late_record_makes_everything_from_it_to_the_watermark_new() -> None:
    assert ask(4, 4, horizon(0, 9)) == Stretch("orders", at(4), at(9))


def test_a_late_record_changes_nothing_from_the_next_record_on() -> None:
    assert ask(4, 5, horizon(0, 9), next_record=8) == Stretch("orders", at(4), at(7))
    assert ask(4, 5, horizon(0, 9), next_record=6) == Stretch("orders", at(4), at(5))


def test_minutes_before_the_first_that_counted_may_count_with_a_record_before_them() -> None:
    assert ask(2, 2, horizon(5, 9), next_record=3) == Stretch("orders", at(2), at(5))


def test_late_and_new_records_together_make_one_stretch() -> None:
    assert ask(4, 12, horizon(0, 9)) == Stretch("orders", at(4), at(12))


def test_a_record_before_the_first_one_starts_the_cluster_earlier() -> None:
    assert ask(2, 2, horizon(5, 9)) == Stretch("orders", at(2), at(9))


def test_since_reaches_back_before_the_first_record() -> None:
    assert ask(5, 6, since=1) == Stretch("orders", at(1), at(6), first_record=at(5))


def test_since_reaches_back_again_when_an_earlier_record_becomes_the_first() -> None:
    assert ask(4, 4, Horizon(at(1), at(9), at(6)), since=1) == Stretch(
        "orders", at(1), at(9), first_record=at(4)
    )


def test_since_has_no_say_once_an_earlier_record_is_known() -> None:
    assert ask(7, 7, Horizon(at(1), at(9), at(6)), since=1) == Stretch("orders", at(7), at(9))


def test_nothing_is_computed_from_until_on() -> None:
    assert ask(3, 9, until=7) == Stretch("orders", at(3), at(6))
    assert ask(7, 9, until=7) is None
    assert ask(8, 9, horizon(0, 6), until=7) is None


def test_records_past_until_still_show_that_the_minutes_before_it_went_unmeasured() -> None:
    assert ask(20, 21, horizon(0, 3), until=7) == Stretch("orders", at(4), at(6), carried_from=at(3))


@pytest.mark.parametrize(("seconds", "minute"), [(0, 0), (1, 1), (59.999_999, 1), (60, 1)])
def test_the_first_whole_minute_from_an_instant_on(seconds: float, minute: int) -> None:
    assert first_minute(ZERO + timedelta(seconds=seconds)) == at(minute)


@given(
    touched=st.tuples(MINUTES, MINUTES).map(sorted),
    known=st.none() | st.tuples(MINUTES, MINUTES).map(lambda pair: horizon(*sorted(pair))),
    since=st.none() | MINUTES,
    until=st.none() | MINUTES,
)
def test_a_stretch_holds_the_touched_minutes_and_joins_what_is_known(
    touched: list[int], known: Horizon | None, since: int | None, until: int | None
) -> None:
    if known and until is not None and known.watermark >= at(until):
        return
    found = ask(*touched, known, since, until)
    inside = [m for m in range(touched[0], touched[1] + 1) if until is None or m < until]
    if found is None:
        assert not inside
        return
    assert found.lo <= found.hi
    assert until is None or found.hi < at(until)
    assert all(found.lo <= at(m) <= found.hi for m in inside)
    if known:
        assert found.hi >= known.watermark
        assert found.lo <= known.watermark + timedelta(minutes=1)
    if found.carried_from:
        assert found.carried_from == found.lo - timedelta(minutes=1)
    if found.first_record:
        assert since is not None
        assert found.lo <= at(since)
        assert found.first_record == at(touched[0])


@given(
    spans=st.lists(st.tuples(MINUTES, MINUTES).map(sorted), max_size=4),
    at_most=st.integers(1, 12),
)
def test_pieces_hold_every_minute_once_oldest_first_and_none_is_too_long(
    spans: list[list[int]], at_most: int
) -> None:
    whole = [
        Stretch(str(n), at(lo), at(hi), carried_from=at(lo - 1), first_record=at(hi))
        for n, (lo, hi) in enumerate(spans)
    ]
    cut = list(pieces(whole, timedelta(minutes=at_most)))
    for one in whole:
        parts = [part for piece in cut for part in piece if part.cluster_id == one.cluster_id]
        minutes = [m for part in parts for m in range(number(part.lo), number(part.hi) + 1)]
        assert minutes == list(range(number(one.lo), number(one.hi) + 1))
        assert (parts[0].carried_from, parts[0].first_record) == (one.carried_from, one.first_record)
        assert all(part.carried_from is None and part.first_record is None for part in parts[1:])
    for piece in cut:
        first, last = min(one.lo for one in piece), max(one.hi for one in piece)
        assert number(last) - number(first) < at_most


Records = dict[int, frozenset[int]]


def _expected(records: Records, found: Stretch, silver: Records) -> Records:
    """Which brokers each minute of a stretch expects."""
    known = silver[number(found.carried_from)] if found.carried_from else None
    if found.first_record:
        known = records[number(found.first_record)]
    wanted: Records = {}
    for minute in range(number(found.lo), number(found.hi) + 1):
        known = records.get(minute, known)
        assert known is not None
        wanted[minute] = known
    return wanted


def _silver(batches: list[Records], since: int | None, until: int | None) -> Records:
    bronze: Records = {}
    silver: Records = {}
    for batch in batches:
        bronze |= batch
        counted = [m for m in bronze if m not in batch and (until is None or m < until)]
        known = Horizon(at(min(silver)), at(max(silver)), at(min(counted))) if silver else None
        found = ask(min(batch), max(batch), known, since, until)
        if found:
            silver |= _expected(bronze, found, silver)
    return silver


@given(
    records=st.dictionaries(st.integers(5, 25), st.frozensets(st.integers(1, 4), min_size=1), min_size=1),
    since=st.none() | st.integers(0, 5),
    until=st.none() | st.integers(6, 30),
    data=st.data(),
)
def test_batches_in_any_order_come_out_like_one_batch(
    records: Records, since: int | None, until: int | None, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(sorted(records)))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(order)), max_size=4)) | {len(order)})
    batches = [{m: records[m] for m in order[a:b]} for a, b in zip([0, *cuts], cuts, strict=False)]
    # A cluster that is first heard of after its end has no place to start from.
    assume(until is None or min(batches[0]) < until)
    assert _silver(batches, since, until) == _silver([records], since, until)
