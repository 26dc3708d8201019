"""Offsets of one mirror are translated, compared with MirrorMaker's own translation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange
from fleetgauge_operations.recovery.offsets.translation import translate
from tests.oracle.offset_sync_store import OffsetSyncStore
from tests.unit.operations.recovery.histories import WHOLE_LOG, Pairs, build_history


def resume_at(committed: int, *pairs: tuple[int, int]) -> int | None:
    return translate(committed, build_history(pairs, ids=None), WHOLE_LOG).resume


@pytest.mark.parametrize(
    ("pairs", "committed", "resume"),
    [
        ([(100, 200)], 150, 201),
        ([(100, 200), (150, 251)], 150, 251),
        ([(100, 200), (150, 251)], 5, None),
        ([(100, 200), (150, 251), (200, 10)], 200, 10),
        ([(100, 200), (150, 251), (200, 10), (20, 20)], 20, 20),
        ([], 0, None),
    ],
)
def test_offsets_are_translated_as_in_kafkas_own_tests(
    pairs: list[tuple[int, int]], committed: int, resume: int | None
) -> None:
    assert resume_at(committed, *pairs) == resume


def test_checkpoints_from_before_a_rewind_are_kept() -> None:
    pairs = [(0, 0), (100, 100), (150, 150), (120, 200), (160, 240)]
    store = OffsetSyncStore()
    for src, dst in pairs:
        store.sync(src, dst)
    assert (resume_at(110, *pairs), store.translate(110)) == (101, -1)
    assert (resume_at(130, *pairs), store.translate(130)) == (201, 201)


def test_recopying_is_reported_until_the_new_run_reaches_the_earlier_one() -> None:
    history = build_history([(0, 0), (100, 100), (50, 200)])
    assert translate(60, history, WHOLE_LOG).is_recopying
    history = build_history([(0, 0), (100, 100), (50, 200), (101, 251)])
    assert not translate(60, history, WHOLE_LOG).is_recopying


def test_a_group_that_lags_far_behind_is_translated_exactly() -> None:
    pairs = [(offset, offset) for offset in range(0, 1_000_001, 100)]
    store = OffsetSyncStore()
    for src, dst in pairs:
        store.sync(src, dst)
    assert store.translate(100_000) == 1
    assert resume_at(100_000, *pairs) == 100_000


def test_a_watermark_raises_the_result_of_an_idle_source() -> None:
    history = build_history([(0, 0)], watermarks=[(10, 500)])
    assert [translate(committed, history, WHOLE_LOG).resume for committed in (9, 10)] == [1, 500]


def test_the_resume_offset_is_within_the_log_with_a_bound_of_its_distance() -> None:
    history = build_history([(0, 0), (10, 12), (20, 25)])
    translation = translate(15, history, LogRange(0, 40))
    assert (translation.resume, translation.early_at_most, translation.possible_loss) == (13, 12, False)
    expired = translate(15, history, LogRange(20, 40))
    assert (expired.resume, expired.early_at_most, expired.possible_loss) == (20, 5, True)
    assert translate(25, history, LogRange(0, 40)).early_at_most == 14


RUNS = st.lists(st.tuples(st.integers(-30, 60), st.integers(1, 60)), min_size=1, max_size=60)


def build_pairs(steps: Pairs) -> list[tuple[int, int]]:
    """Return the offset syncs of a mirror that restarts now and then."""
    src = dst = 100
    pairs = []
    for back_or_on, on in steps:
        src, dst = max(0, src + (back_or_on or 1)), dst + on
        pairs.append((src, dst))
    return pairs


@given(RUNS, st.integers(0, 2_000))
def test_no_result_is_lower_than_that_of_mirror_maker(steps: Pairs, committed: int) -> None:
    pairs = build_pairs(steps)
    store = OffsetSyncStore()
    for src, dst in pairs:
        store.sync(src, dst)
    theirs, ours = store.translate(committed), resume_at(committed, *pairs)
    assert ours is not None or theirs == -1
    assert ours is None or theirs is None or ours >= theirs
