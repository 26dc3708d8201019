"""The history of one source's checkpoints, its runs and watermarks."""

import pytest

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.replication_runs import HistoryUpdate
from tests.unit.operations.recovery.histories import IDS, WHOLE_LOG, build_history, offsets_of

#: Replicated up to offset 30, then again from offset 15 on.
TWICE = [(0, 0), (10, 12), (20, 25), (30, 36), (15, 41), (25, 55), (35, 66)]


def sync(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst)


def tracer(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=CheckpointOrigin.TRACER)


def watermark(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=CheckpointOrigin.IDLE_WATERMARK)


def fence(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=CheckpointOrigin.FENCE)


def last_consumed(history: OffsetHistory, position: int) -> Checkpoint | None:
    prefix = history.consumed_prefix(position)
    return prefix and prefix.evidence


def next_src(history: OffsetHistory, position: int) -> int | None:
    prefix = history.consumed_prefix(position)
    return prefix and prefix.next_src


def test_floors_are_found_by_source_and_by_destination_offset() -> None:
    history = build_history([(0, 0), (10, 12), (20, 25)])
    assert [offsets_of(history.floor(offset, WHOLE_LOG)) for offset in (0, 9, 10, 25)] == [
        (0, 0),
        (0, 0),
        (10, 12),
        (20, 25),
    ]
    assert [offsets_of(last_consumed(history, offset)) for offset in (0, 11, 12, 99)] == [
        (0, 0),
        (0, 0),
        (10, 12),
        (20, 25),
    ]
    assert [next_src(history, offset) for offset in (0, 11, 12, 99)] == [0, 1, 10, 21]


def test_there_is_no_floor_before_the_first_checkpoint() -> None:
    history = build_history([(10, 12)])
    assert history.floor(9, WHOLE_LOG) is None
    assert history.consumed_prefix(11) is None
    assert build_history().floor(0, WHOLE_LOG) is None


def test_a_checkpoint_beyond_the_log_end_is_ignored() -> None:
    assert offsets_of(build_history([(0, 0), (10, 12)]).floor(10, LogRange(0, 12))) == (0, 0)


def test_a_row_keeps_its_origin_and_time() -> None:
    history = build_history()
    row = Checkpoint(1, 2, 1_700_000_000_000, CheckpointOrigin.TRACER)
    assert history.append(row) is HistoryUpdate.ADDED
    assert history.latest == row == history.floor(1, WHOLE_LOG)


def test_a_repeated_row_changes_nothing() -> None:
    history = build_history([(10, 12)])
    assert history.append(sync(10, 12)) is HistoryUpdate.UNCHANGED
    assert (history.count, history.epoch) == (1, 0)


def test_a_source_offset_that_goes_back_begins_a_run_and_an_epoch() -> None:
    history = build_history(TWICE)
    assert (history.epoch, history.has_recopies, history.is_recopying) == (1, True, False)
    assert history.append(sync(15, 70)) is HistoryUpdate.RECOPIED
    assert history.is_recopying


def test_the_floor_of_a_duplicated_record_is_in_the_earlier_run() -> None:
    history = build_history(TWICE)
    assert offsets_of(history.floor(17, WHOLE_LOG)) == (10, 12)
    assert offsets_of(history.floor(20, WHOLE_LOG)) == (20, 25)


def test_a_run_may_hold_more_records_than_its_checkpoints_show() -> None:
    # Four records fit between its last checkpoint and the next run: 31 to 34, or later ones.
    assert offsets_of(build_history(TWICE).floor(40, WHOLE_LOG)) == (30, 36)
    assert offsets_of(build_history([*TWICE[:4], (15, 37), (25, 55), (35, 66)]).floor(40, WHOLE_LOG)) == (
        35,
        66,
    )


def test_later_checkpoints_bound_how_far_a_run_can_reach() -> None:
    further = [(36, 67), (37, 68), (39, 70)]
    history = build_history(TWICE + further)
    assert offsets_of(history.floor(39, WHOLE_LOG)) == (30, 36)
    assert offsets_of(history.floor(40, WHOLE_LOG)) == (39, 70)


def test_an_expired_run_does_not_lower_the_floor() -> None:
    assert offsets_of(build_history(TWICE).floor(40, LogRange(40, 80))) == (30, 36)
    assert offsets_of(build_history(TWICE).floor(40, LogRange(41, 80))) == (35, 66)
    assert offsets_of(build_history([(20, 5), (0, 41)]).floor(7, LogRange(41, 80))) == (0, 41)


def test_runs_before_the_log_start_are_discarded() -> None:
    history = build_history(TWICE)
    history.expire(40)
    assert (history.count, history.discarded_count) == (7, 0)
    history.expire(41)
    assert (history.count, history.discarded_count, history.has_recopies) == (3, 4, False)
    assert offsets_of(history.floor(40, LogRange(41, 80))) == (35, 66)
    # The last run is kept, even if it has expired.
    history.expire(90)
    assert history.count == 3


def test_the_consumed_prefix_is_that_of_the_run_that_reached_furthest() -> None:
    history = build_history(TWICE)
    assert [offsets_of(last_consumed(history, offset)) for offset in (36, 41, 55, 66)] == [
        (30, 36),
        (30, 36),
        (30, 36),
        (35, 66),
    ]
    assert [next_src(history, offset) for offset in (36, 41, 55, 66, 67)] == [30, 31, 31, 35, 36]


def test_a_run_with_older_records_limits_the_consumed_prefix() -> None:
    history = build_history([(15, 0), (25, 10), (0, 20), (10, 30), (20, 40), (30, 50)])
    assert [next_src(history, offset) for offset in (0, 15, 20, 35, 45, 60)] == [0, 0, 0, 11, 26, 31]
    assert offsets_of(last_consumed(history, 15)) == (0, 20)
    assert offsets_of(last_consumed(history, 45)) == (25, 10)


def test_truncated_records_may_be_replicated_again() -> None:
    history = build_history([(0, 0), (10, 10)])
    history.append(fence(40, 1))
    history.append(sync(41, 1))
    assert next_src(history, 2) == 42
    history.append(sync(40, 2))
    assert [next_src(history, offset) for offset in (1, 2, 3)] == [40, 40, 42]


def test_a_destination_offset_that_goes_back_truncates_the_history() -> None:
    history = build_history([(0, 0), (10, 12), (20, 25), (30, 36)])
    assert history.append(sync(40, 20)) is HistoryUpdate.TRUNCATED
    assert (history.epoch, history.count, history.discarded_count) == (1, 3, 2)
    assert offsets_of(history.floor(12, WHOLE_LOG)) == (10, 12)
    # Records replicated after offset 12 but not reported are unknown.
    assert offsets_of(history.floor(40, WHOLE_LOG)) == (10, 12)
    assert offsets_of(history.floor(40, LogRange(20, 99))) == (40, 20)


def test_a_destination_offset_that_goes_back_without_topic_ids_invalidates_the_history() -> None:
    history = build_history([(100, 200), (150, 251)], ids=None)
    assert history.append(sync(200, 10)) is HistoryUpdate.INVALIDATED
    assert history.floor(199, WHOLE_LOG) is None
    assert offsets_of(history.floor(200, WHOLE_LOG)) == (200, 10)


@pytest.mark.parametrize("ids", [TopicIds("new", "d"), TopicIds("s", "new")])
def test_another_topic_id_at_either_end_invalidates_the_history(ids: TopicIds) -> None:
    history = build_history([(0, 0), (10, 12)], watermarks=[(11, 13)])
    assert history.update_topic_ids(IDS) is HistoryUpdate.UNCHANGED
    assert history.update_topic_ids(ids) is HistoryUpdate.INVALIDATED
    assert (history.ids, history.epoch, history.count, history.latest) == (ids, 1, 0, None)
    assert (
        history.floor(99, WHOLE_LOG)
        is history.consumed_prefix(99)
        is history.watermark_after(99, WHOLE_LOG)
        is None
    )


def test_a_truncated_first_checkpoint_leaves_earlier_records_unknown() -> None:
    history = build_history([(100, 100)])
    history.append(sync(120, 50))
    assert offsets_of(history.floor(120, WHOLE_LOG)) == (120, 50)
    history.append(sync(20, 60))
    assert history.floor(99, WHOLE_LOG) is None
    gone = build_history([(100, 100)])
    assert gone.append(sync(20, 50)) is HistoryUpdate.TRUNCATED
    assert gone.floor(99, WHOLE_LOG) is None
    assert offsets_of(gone.floor(100, WHOLE_LOG)) == (20, 50)


def test_the_reach_of_a_truncated_run_is_unknown() -> None:
    further = [(41 + n, 31 + n) for n in range(40)]
    history = build_history([(0, 0), (10, 12), (20, 25)])
    history.append(sync(40, 25))
    for pair_of_offsets in further:
        history.append(sync(*pair_of_offsets))
    assert offsets_of(history.floor(70, WHOLE_LOG)) == (10, 12)
    history.append(fence(90, 80))
    assert offsets_of(history.watermark_after(90, WHOLE_LOG)) == (90, 80)


def test_late_rows_of_another_origin_are_inserted_in_order() -> None:
    history = build_history(TWICE)
    assert [history.append(tracer(*offsets)) for offsets in [(5, 6), (31, 38), (12, 39), (36, 67)]] == [
        HistoryUpdate.ADDED
    ] * 4
    assert history.epoch == 1
    assert offsets_of(history.floor(6, WHOLE_LOG)) == (5, 6)
    assert offsets_of(last_consumed(history, 40)) == (31, 38)
    assert history.append(tracer(36, 67)) is HistoryUpdate.UNCHANGED
    assert history.append(sync(36, 67)) is HistoryUpdate.UNCHANGED


def test_a_row_that_contradicts_another_origin_truncates_the_history() -> None:
    history = build_history([(0, 0), (10, 12), (20, 25)])
    assert history.append(tracer(15, 8)) is HistoryUpdate.TRUNCATED
    assert offsets_of(last_consumed(history, 99)) == (15, 8)


def test_a_watermark_bounds_later_and_earlier_records() -> None:
    history = build_history([(0, 0)], watermarks=[(10, 30), (10, 50), (10, 70), (12, 90)])
    assert [offsets_of(history.watermark_after(offset, WHOLE_LOG)) for offset in (9, 10, 12)] == [
        None,
        (10, 70),
        (12, 90),
    ]
    assert [offsets_of(history.watermark_before(offset)) for offset in (29, 30, 69, 90)] == [
        None,
        (10, 30),
        (10, 30),
        (12, 90),
    ]
    assert offsets_of(history.watermark_after(12, LogRange(0, 80))) == (10, 70)


def test_a_fence_bounds_later_records_only() -> None:
    history = build_history([(0, 0)], fences=[(10, 30)])
    assert offsets_of(history.watermark_after(10, WHOLE_LOG)) == (10, 30)
    assert history.watermark_before(99) is None


def test_a_watermark_whose_destination_goes_back_truncates_the_history() -> None:
    history = build_history([(0, 0), (10, 12), (20, 25)], watermarks=[(5, 8), (21, 40)])
    assert history.append(watermark(21, 20)) is HistoryUpdate.TRUNCATED
    assert offsets_of(history.floor(99, WHOLE_LOG)) == (10, 12)
    assert offsets_of(history.watermark_after(20, WHOLE_LOG)) == (5, 8)


def test_a_source_end_that_goes_back_invalidates_the_history() -> None:
    history = build_history([(0, 0), (10, 12)], watermarks=[(11, 13)])
    assert history.append(watermark(5, 13)) is HistoryUpdate.INVALIDATED
    assert (history.count, history.discarded_count) == (0, 2)
    late = build_history([(0, 0), (10, 12)])
    assert late.append(watermark(5, 13)) is HistoryUpdate.INVALIDATED


def test_a_record_before_a_watermark_that_it_must_follow_truncates_the_history() -> None:
    history = build_history([(0, 0)], watermarks=[(10, 30)])
    assert history.append(sync(12, 20)) is HistoryUpdate.TRUNCATED
    assert history.watermark_after(99, WHOLE_LOG) is None


def test_a_run_with_older_records_discards_the_lower_halves_of_watermarks() -> None:
    history = build_history([(15, 0)], watermarks=[(16, 1)])
    history.append(sync(3, 9))
    assert history.watermark_before(99) is None
    assert offsets_of(history.watermark_after(16, WHOLE_LOG)) == (16, 1)


def test_ceilings_are_found_by_source_and_by_destination_offset() -> None:
    history = build_history(TWICE)
    assert [offsets_of(history.ceiling(offset, WHOLE_LOG)) for offset in (0, 11, 31, 36)] == [
        (0, 0),
        (20, 25),
        (35, 66),
        None,
    ]
    assert offsets_of(history.ceiling(0, LogRange(13, 99))) == (20, 25)
    assert history.ceiling(31, LogRange(0, 66)) is None
    assert [offsets_of(history.ceiling_dst(offset)) for offset in (0, 37, 67)] == [(0, 0), (15, 41), None]
