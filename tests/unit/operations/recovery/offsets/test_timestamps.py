import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import Log
from fleetgauge_operations.recovery.offsets.timestamps import (
    ByTimestamp,
    Destination,
    Flag,
    Last,
    TimestampType,
    by_timestamp,
)

NOW = 10_000
#: From offset 7 on.
TIMES = [100, 200, 200, 200, 300]
START = 7


def first_from(times: list[int], start: int, timestamp_ms: int) -> int | None:
    """What a broker answers."""
    return next((at for at, one in enumerate(times, start) if one >= timestamp_ms), None)


def to(timestamp_ms: int, rank: int = 0, *, same_order: bool = False) -> ByTimestamp:
    last = Last(timestamp_ms, first_from(TIMES, START, timestamp_ms), rank)
    destination = Destination(Log(START, START + len(TIMES)), NOW, same_order=same_order)
    return by_timestamp({"A": last}, destination)


@pytest.mark.parametrize(("timestamp_ms", "resume"), [(200, 8), (250, 11), (400, 12), (50, 7)])
def test_the_first_offset_with_that_timestamp_or_a_later_one(timestamp_ms: int, resume: int) -> None:
    assert to(timestamp_ms) == ByTimestamp(resume, frozenset())


def test_the_rank_among_equal_timestamps_counts_only_where_the_order_is_verified() -> None:
    assert to(200, rank=2, same_order=True).resume == 10
    assert to(200, rank=2).resume == 8


def test_of_merged_topics_the_earliest_over_sources_is_taken() -> None:
    # A's last has 200 and lies at 5; of B, 150 at 3 is not consumed.
    times = [100, 120, 110, 150, 130, 200]
    log = Destination(Log(0, 6), NOW, same_order=True)
    together = by_timestamp({"all": Last(200, first_from(times, 0, 200))}, log)
    assert together.resume == 5
    each = {"A": Last(200, 5, rank=0), "B": Last(120, first_from(times, 0, 120))}
    assert by_timestamp(each, log).resume == 1


def test_no_rank_is_added_in_merged_topics() -> None:
    log = Destination(Log(0, 6), NOW, same_order=True)
    assert by_timestamp({"A": Last(200, 3, rank=2), "B": Last(200, 3, rank=1)}, log).resume == 3


@pytest.mark.parametrize("last", [{}, {"A": None}, {"A": Last(200, 8), "B": None}])
def test_of_a_source_nobody_knows_all_is_read_again(last: dict[str, Last | None]) -> None:
    found = by_timestamp(last, Destination(Log(7, 12), NOW))
    assert found == ByTimestamp(7, frozenset({Flag.UNKNOWN_ORIGIN}))


def test_a_destination_with_times_of_its_own_is_told_of_and_not_trusted() -> None:
    destination = Destination(Log(0, 9), NOW, TimestampType.LOG_APPEND_TIME, same_order=True)
    found = by_timestamp({"A": Last(200, 3, rank=1)}, destination)
    assert (found.resume, found.flags, found.safe) == (3, {Flag.APPEND_TIME}, False)
    # The producer's clock was ahead: its record was appended at 150 and lies at 1, which nobody can see.
    assert first_from([100, 150, 180, 210], 0, 200) == 3


def test_a_timestamp_in_the_future_is_told_of() -> None:
    found = by_timestamp({"A": Last(NOW + 1, None)}, Destination(Log(0, 9), NOW))
    assert (found.resume, found.flags, found.safe) == (9, {Flag.FUTURE}, True)


def test_an_answer_far_before_that_of_checkpoints_is_told_of() -> None:
    destination = Destination(Log(0, 90_000), NOW)
    last = {"A": Last(200, 5)}
    assert by_timestamp(last, destination, by_checkpoints=10_005).flags == frozenset()
    assert by_timestamp(last, destination, by_checkpoints=10_006).flags == {Flag.FAR_BEFORE}
    assert by_timestamp(last, destination, by_checkpoints=7, far=1).flags == {Flag.FAR_BEFORE}


RECORDS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 20)), min_size=1, max_size=40)


@given(RECORDS, st.data())
def test_no_record_is_passed_over_be_timestamps_out_of_order_as_they_may(
    records: list[tuple[str, int]], data: st.DataObject
) -> None:
    times = [one for _, one in records]
    last: dict[str, Last | None] = {}
    left = []
    for source in sorted({one for one, _ in records}):
        at = [offset for offset, (one, _) in enumerate(records) if one == source]
        consumed = data.draw(st.integers(0, len(at)))
        left += at[consumed:]
        if consumed:
            timestamp_ms = times[at[consumed - 1]]
            rank = sum(times[offset] == timestamp_ms for offset in at[: consumed - 1])
            last[source] = Last(timestamp_ms, first_from(times, 0, timestamp_ms), rank)
        else:
            last[source] = None
    destination = Destination(Log(0, len(records)), NOW, same_order=True)
    assert by_timestamp(last, destination).resume <= min(left, default=len(records))
