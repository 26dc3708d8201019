import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import Log
from fleetgauge_operations.recovery.offsets.translation import translated
from tests.oracle.offset_sync_store import OffsetSyncStore
from tests.unit.operations.recovery.known import EVER, Pairs, known


def to(committed: int, *pairs: tuple[int, int]) -> int | None:
    return translated(committed, known(pairs, ids=None), EVER).resume


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
def test_kafkas_own_vectors(pairs: list[tuple[int, int]], committed: int, resume: int | None) -> None:
    assert to(committed, *pairs) == resume


def test_before_a_rewind_the_earlier_copy_is_still_known() -> None:
    pairs = [(0, 0), (100, 100), (150, 150), (120, 200), (160, 240)]
    store = OffsetSyncStore()
    for one in pairs:
        store.sync(*one)
    assert (to(110, *pairs), store.translate(110)) == (101, -1)
    assert (to(130, *pairs), store.translate(130)) == (201, 201)


def test_an_earlier_copy_that_reaches_further_is_told_of() -> None:
    history = known([(0, 0), (100, 100), (50, 200)])
    assert translated(60, history, EVER).unfinished
    history = known([(0, 0), (100, 100), (50, 200), (101, 251)])
    assert not translated(60, history, EVER).unfinished


def test_a_group_far_behind_is_not_sent_far_back() -> None:
    pairs = [(one, one) for one in range(0, 1_000_001, 100)]
    store = OffsetSyncStore()
    for one in pairs:
        store.sync(*one)
    assert store.translate(100_000) == 1
    assert to(100_000, *pairs) == 100_000


def test_a_silent_source_is_caught_up_by_its_watermark() -> None:
    history = known([(0, 0)], watermarks=[(10, 500)])
    assert [translated(one, history, EVER).resume for one in (9, 10)] == [1, 500]


def test_the_answer_lies_in_the_log_and_says_how_early_it_may_be() -> None:
    history = known([(0, 0), (10, 12), (20, 25)])
    found = translated(15, history, Log(0, 40))
    assert (found.resume, found.early_at_most, found.possible_loss) == (13, 12, False)
    gone = translated(15, history, Log(20, 40))
    assert (gone.resume, gone.early_at_most, gone.possible_loss) == (20, 5, True)
    assert translated(25, history, Log(0, 40)).early_at_most == 14


RUNS = st.lists(st.tuples(st.integers(-30, 60), st.integers(1, 60)), min_size=1, max_size=60)


def told(steps: Pairs) -> list[tuple[int, int]]:
    """As a mirror would that begins again now and then."""
    src = dst = 100
    pairs = []
    for back_or_on, on in steps:
        src, dst = max(0, src + (back_or_on or 1)), dst + on
        pairs.append((src, dst))
    return pairs


@given(RUNS, st.integers(0, 2_000))
def test_no_answer_is_earlier_than_mirror_maker_s(steps: Pairs, committed: int) -> None:
    pairs = told(steps)
    store = OffsetSyncStore()
    for one in pairs:
        store.sync(*one)
    theirs, ours = store.translate(committed), to(committed, *pairs)
    assert ours is not None or theirs == -1
    assert ours is None or theirs is None or ours >= theirs
