import pytest

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.offsets.replication_runs import Change
from tests.unit.operations.recovery.known import EVER, IDS, known, pair

#: Copied to 30, then again from 15 on.
TWICE = [(0, 0), (10, 12), (20, 25), (30, 36), (15, 41), (25, 55), (35, 66)]


def sync(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst)


def tracer(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=Origin.TRACER)


def watermark(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=Origin.IDLE_WATERMARK)


def fence(src: int, dst: int) -> Checkpoint:
    return Checkpoint(src, dst, origin=Origin.FENCE)


def consumed(history: History, position: int) -> Checkpoint | None:
    found = history.consumed(position)
    return found and found.by


def next_src(history: History, position: int) -> int | None:
    found = history.consumed(position)
    return found and found.next_src


def test_the_latest_at_or_before_an_offset_is_found_from_either_end() -> None:
    history = known([(0, 0), (10, 12), (20, 25)])
    assert [pair(history.floor(one, EVER)) for one in (0, 9, 10, 25)] == [(0, 0), (0, 0), (10, 12), (20, 25)]
    assert [pair(consumed(history, one)) for one in (0, 11, 12, 99)] == [(0, 0), (0, 0), (10, 12), (20, 25)]
    assert [next_src(history, one) for one in (0, 11, 12, 99)] == [0, 1, 10, 21]


def test_before_the_first_nothing_is_known() -> None:
    history = known([(10, 12)])
    assert history.floor(9, EVER) is None
    assert history.consumed(11) is None
    assert known().floor(0, EVER) is None


def test_what_lies_beyond_the_logs_end_is_of_another_log() -> None:
    assert pair(known([(0, 0), (10, 12)]).floor(10, Log(0, 12))) == (0, 0)


def test_a_row_keeps_who_told_it_and_when() -> None:
    history = known()
    row = Checkpoint(1, 2, 1_700_000_000_000, Origin.TRACER)
    assert history.append(row) is Change.ADDED
    assert history.newest == row == history.floor(1, EVER)


def test_the_same_row_again_changes_nothing() -> None:
    history = known([(10, 12)])
    assert history.append(sync(10, 12)) is Change.KNOWN
    assert (history.count, history.epoch) == (1, 0)


def test_a_source_offset_that_goes_back_is_another_copy_and_epoch() -> None:
    history = known(TWICE)
    assert (history.epoch, history.copied_again, history.unfinished) == (1, True, False)
    assert history.append(sync(15, 70)) is Change.COPIED_AGAIN
    assert history.unfinished


def test_of_a_record_that_is_there_twice_the_earlier_place_is_taken() -> None:
    history = known(TWICE)
    assert pair(history.floor(17, EVER)) == (10, 12)
    assert pair(history.floor(20, EVER)) == (20, 25)


def test_a_copy_may_hold_more_than_was_told_of_it() -> None:
    # Four records fit between its last checkpoint and the next copy: 31 to 34, or what is left of more.
    assert pair(known(TWICE).floor(40, EVER)) == (30, 36)
    assert pair(known([*TWICE[:4], (15, 37), (25, 55), (35, 66)]).floor(40, EVER)) == (35, 66)


def test_checkpoints_further_on_prove_how_far_a_copy_can_have_come() -> None:
    further = [(36, 67), (37, 68), (39, 70)]
    history = known(TWICE + further)
    assert pair(history.floor(39, EVER)) == (30, 36)
    assert pair(history.floor(40, EVER)) == (39, 70)


def test_a_copy_that_has_expired_holds_nothing_back() -> None:
    assert pair(known(TWICE).floor(40, Log(40, 80))) == (30, 36)
    assert pair(known(TWICE).floor(40, Log(41, 80))) == (35, 66)
    assert pair(known([(20, 5), (0, 41)]).floor(7, Log(41, 80))) == (0, 41)


def test_copies_of_which_nothing_can_be_read_are_forgotten() -> None:
    history = known(TWICE)
    history.expire(40)
    assert (history.count, history.forgotten) == (7, 0)
    history.expire(41)
    assert (history.count, history.forgotten, history.copied_again) == (3, 4, False)
    assert pair(history.floor(40, Log(41, 80))) == (35, 66)
    # The last one is kept, whatever has expired of it.
    history.expire(90)
    assert history.count == 3


def test_what_is_consumed_twice_counts_by_the_copy_that_came_further() -> None:
    history = known(TWICE)
    assert [pair(consumed(history, one)) for one in (36, 41, 55, 66)] == [
        (30, 36),
        (30, 36),
        (30, 36),
        (35, 66),
    ]
    assert [next_src(history, one) for one in (36, 41, 55, 66, 67)] == [30, 31, 31, 35, 36]


def test_a_copy_that_brings_what_nobody_had_is_waited_for() -> None:
    history = known([(15, 0), (25, 10), (0, 20), (10, 30), (20, 40), (30, 50)])
    assert [next_src(history, one) for one in (0, 15, 20, 35, 45, 60)] == [0, 0, 0, 11, 26, 31]
    assert pair(consumed(history, 15)) == (0, 20)
    assert pair(consumed(history, 45)) == (25, 10)


def test_what_a_cut_took_may_come_again() -> None:
    history = known([(0, 0), (10, 10)])
    history.append(fence(40, 1))
    history.append(sync(41, 1))
    assert next_src(history, 2) == 42
    history.append(sync(40, 2))
    assert [next_src(history, one) for one in (1, 2, 3)] == [40, 40, 42]


def test_a_destination_that_goes_back_has_lost_its_end() -> None:
    history = known([(0, 0), (10, 12), (20, 25), (30, 36)])
    assert history.append(sync(40, 20)) is Change.CUT
    assert (history.epoch, history.count, history.forgotten) == (1, 3, 2)
    assert pair(history.floor(12, EVER)) == (10, 12)
    # Nobody knows what had been copied behind 12 without being told.
    assert pair(history.floor(40, EVER)) == (10, 12)
    assert pair(history.floor(40, Log(20, 99))) == (40, 20)


def test_without_ids_it_is_another_log() -> None:
    history = known([(100, 200), (150, 251)], ids=None)
    assert history.append(sync(200, 10)) is Change.MADE_ANEW
    assert history.floor(199, EVER) is None
    assert pair(history.floor(200, EVER)) == (200, 10)


@pytest.mark.parametrize("ids", [TopicIds("new", "d"), TopicIds("s", "new")])
def test_another_topic_id_at_either_end_makes_all_of_no_use(ids: TopicIds) -> None:
    history = known([(0, 0), (10, 12)], watermarks=[(11, 13)])
    assert history.renew(IDS) is Change.KNOWN
    assert history.renew(ids) is Change.MADE_ANEW
    assert (history.ids, history.epoch, history.count, history.newest) == (ids, 1, 0, None)
    assert history.floor(99, EVER) is history.consumed(99) is history.watermark_after(99, EVER) is None


def test_what_was_before_all_that_was_known_is_not_known_when_that_is_cut() -> None:
    history = known([(100, 100)])
    history.append(sync(120, 50))
    assert pair(history.floor(120, EVER)) == (120, 50)
    history.append(sync(20, 60))
    assert history.floor(99, EVER) is None
    gone = known([(100, 100)])
    assert gone.append(sync(20, 50)) is Change.CUT
    assert gone.floor(99, EVER) is None
    assert pair(gone.floor(100, EVER)) == (20, 50)


def test_behind_a_cut_nothing_proves_how_far_a_copy_had_come() -> None:
    further = [(41 + n, 31 + n) for n in range(40)]
    history = known([(0, 0), (10, 12), (20, 25)])
    history.append(sync(40, 25))
    for one in further:
        history.append(sync(*one))
    assert pair(history.floor(70, EVER)) == (10, 12)
    history.append(fence(90, 80))
    assert pair(history.watermark_after(90, EVER)) == (90, 80)


def test_a_slower_origin_fills_in_what_it_tells_late() -> None:
    history = known(TWICE)
    assert [history.append(tracer(*one)) for one in [(5, 6), (31, 38), (12, 39), (36, 67)]] == [
        Change.ADDED
    ] * 4
    assert history.epoch == 1
    assert pair(history.floor(6, EVER)) == (5, 6)
    assert pair(consumed(history, 40)) == (31, 38)
    assert history.append(tracer(36, 67)) is Change.KNOWN
    assert history.append(sync(36, 67)) is Change.KNOWN


def test_an_origin_that_contradicts_another_has_seen_a_cut() -> None:
    history = known([(0, 0), (10, 12), (20, 25)])
    assert history.append(tracer(15, 8)) is Change.CUT
    assert pair(consumed(history, 99)) == (15, 8)


def test_a_watermark_tells_what_follows_and_what_went_before() -> None:
    history = known([(0, 0)], watermarks=[(10, 30), (10, 50), (10, 70), (12, 90)])
    assert [pair(history.watermark_after(one, EVER)) for one in (9, 10, 12)] == [None, (10, 70), (12, 90)]
    assert [pair(history.watermark_before(one)) for one in (29, 30, 69, 90)] == [
        None,
        (10, 30),
        (10, 30),
        (12, 90),
    ]
    assert pair(history.watermark_after(12, Log(0, 80))) == (10, 70)


def test_a_fence_tells_only_what_follows() -> None:
    history = known([(0, 0)], fences=[(10, 30)])
    assert pair(history.watermark_after(10, EVER)) == (10, 30)
    assert history.watermark_before(99) is None


def test_a_watermark_that_goes_back_at_the_destination_has_seen_a_cut() -> None:
    history = known([(0, 0), (10, 12), (20, 25)], watermarks=[(5, 8), (21, 40)])
    assert history.append(watermark(21, 20)) is Change.CUT
    assert pair(history.floor(99, EVER)) == (10, 12)
    assert pair(history.watermark_after(20, EVER)) == (5, 8)


def test_a_source_whose_end_goes_back_counts_anew() -> None:
    history = known([(0, 0), (10, 12)], watermarks=[(11, 13)])
    assert history.append(watermark(5, 13)) is Change.MADE_ANEW
    assert (history.count, history.forgotten) == (0, 2)
    late = known([(0, 0), (10, 12)])
    assert late.append(watermark(5, 13)) is Change.MADE_ANEW


def test_a_record_before_the_watermark_that_it_was_to_follow_has_seen_a_cut() -> None:
    history = known([(0, 0)], watermarks=[(10, 30)])
    assert history.append(sync(12, 20)) is Change.CUT
    assert history.watermark_after(99, EVER) is None


def test_what_a_watermark_says_of_before_ends_with_a_copy_from_before_all() -> None:
    history = known([(15, 0)], watermarks=[(16, 1)])
    history.append(sync(3, 9))
    assert history.watermark_before(99) is None
    assert pair(history.watermark_after(16, EVER)) == (16, 1)


def test_the_next_checkpoint_is_found_from_either_end() -> None:
    history = known(TWICE)
    assert [pair(history.ceiling(one, EVER)) for one in (0, 11, 31, 36)] == [(0, 0), (20, 25), (35, 66), None]
    assert pair(history.ceiling(0, Log(13, 99))) == (20, 25)
    assert history.ceiling(31, Log(0, 66)) is None
    assert [pair(history.next_from(one)) for one in (0, 37, 67)] == [(0, 0), (15, 41), None]
