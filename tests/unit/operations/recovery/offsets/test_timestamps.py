"""Offsets are translated by timestamps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange
from fleetgauge_operations.recovery.offsets.timestamps import (
    DestinationTopic,
    LastConsumedRecord,
    TimestampFlag,
    TimestampTranslation,
    TimestampType,
    translate_by_timestamp,
)

NOW = 10_000
#: From offset 7 on.
TIMES = [100, 200, 200, 200, 300]
START = 7


def first_from(times: list[int], start: int, timestamp_ms: int) -> int | None:
    """Return what a broker answers to ListOffsets."""
    return next((at for at, time_ms in enumerate(times, start) if time_ms >= timestamp_ms), None)


def translate(timestamp_ms: int, rank: int = 0, *, same_order: bool = False) -> TimestampTranslation:
    last = LastConsumedRecord(timestamp_ms, first_from(TIMES, START, timestamp_ms), rank)
    destination = DestinationTopic(LogRange(START, START + len(TIMES)), NOW, same_order=same_order)
    return translate_by_timestamp({"A": last}, destination)


@pytest.mark.parametrize(("timestamp_ms", "resume"), [(200, 8), (250, 11), (400, 12), (50, 7)])
def test_the_result_is_the_first_offset_with_that_timestamp_or_a_later_one(
    timestamp_ms: int, resume: int
) -> None:
    assert translate(timestamp_ms) == TimestampTranslation(resume, frozenset())


def test_the_rank_among_equal_timestamps_is_used_only_if_the_order_is_verified() -> None:
    assert translate(200, rank=2, same_order=True).resume == 10
    assert translate(200, rank=2).resume == 8


def test_the_lowest_offset_over_all_sources_of_a_merged_topic_is_used() -> None:
    # The last consumed record of A has timestamp 200 at offset 5; B at offset 3 is not consumed.
    times = [100, 120, 110, 150, 130, 200]
    log = DestinationTopic(LogRange(0, 6), NOW, same_order=True)
    together = translate_by_timestamp({"all": LastConsumedRecord(200, first_from(times, 0, 200))}, log)
    assert together.resume == 5
    each = {"A": LastConsumedRecord(200, 5, rank=0), "B": LastConsumedRecord(120, first_from(times, 0, 120))}
    assert translate_by_timestamp(each, log).resume == 1


def test_no_rank_is_added_in_merged_topics() -> None:
    log = DestinationTopic(LogRange(0, 6), NOW, same_order=True)
    assert (
        translate_by_timestamp(
            {"A": LastConsumedRecord(200, 3, rank=2), "B": LastConsumedRecord(200, 3, rank=1)}, log
        ).resume
        == 3
    )


@pytest.mark.parametrize("last", [{}, {"A": None}, {"A": LastConsumedRecord(200, 8), "B": None}])
def test_an_unknown_source_resumes_at_the_log_start(last: dict[str, LastConsumedRecord | None]) -> None:
    translation = translate_by_timestamp(last, DestinationTopic(LogRange(7, 12), NOW))
    assert translation == TimestampTranslation(7, frozenset({TimestampFlag.UNKNOWN_ORIGIN}))


def test_log_append_time_is_flagged_as_unsafe() -> None:
    destination = DestinationTopic(LogRange(0, 9), NOW, TimestampType.LOG_APPEND_TIME, same_order=True)
    translation = translate_by_timestamp({"A": LastConsumedRecord(200, 3, rank=1)}, destination)
    assert (translation.resume, translation.flags, translation.is_safe) == (
        3,
        {TimestampFlag.APPEND_TIME},
        False,
    )
    # The producer's clock was ahead: its record was appended at 150 to offset 1, which is skipped.
    assert first_from([100, 150, 180, 210], 0, 200) == 3


def test_a_timestamp_in_the_future_is_flagged() -> None:
    translation = translate_by_timestamp(
        {"A": LastConsumedRecord(NOW + 1, None)}, DestinationTopic(LogRange(0, 9), NOW)
    )
    assert (translation.resume, translation.flags, translation.is_safe) == (9, {TimestampFlag.FUTURE}, True)


def test_a_result_far_before_the_checkpoints_is_flagged() -> None:
    destination = DestinationTopic(LogRange(0, 90_000), NOW)
    last = {"A": LastConsumedRecord(200, 5)}
    assert translate_by_timestamp(last, destination, by_checkpoints=10_005).flags == frozenset()
    assert translate_by_timestamp(last, destination, by_checkpoints=10_006).flags == {
        TimestampFlag.FAR_BEFORE
    }
    assert translate_by_timestamp(last, destination, by_checkpoints=7, far=1).flags == {
        TimestampFlag.FAR_BEFORE
    }


RECORDS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 20)), min_size=1, max_size=40)


@given(RECORDS, st.data())
def test_no_unconsumed_record_is_skipped_with_timestamps_in_any_order(
    records: list[tuple[str, int]], data: st.DataObject
) -> None:
    times = [timestamp_ms for _, timestamp_ms in records]
    last: dict[str, LastConsumedRecord | None] = {}
    unconsumed = []
    for source in sorted({source for source, _ in records}):
        at = [offset for offset, (origin, _) in enumerate(records) if origin == source]
        consumed = data.draw(st.integers(0, len(at)))
        unconsumed += at[consumed:]
        if consumed:
            timestamp_ms = times[at[consumed - 1]]
            rank = sum(times[offset] == timestamp_ms for offset in at[: consumed - 1])
            last[source] = LastConsumedRecord(timestamp_ms, first_from(times, 0, timestamp_ms), rank)
        else:
            last[source] = None
    destination = DestinationTopic(LogRange(0, len(records)), NOW, same_order=True)
    assert translate_by_timestamp(last, destination).resume <= min(unconsumed, default=len(records))
