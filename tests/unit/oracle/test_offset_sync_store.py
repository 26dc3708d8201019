"""The vectors of Kafka's OffsetSyncStoreTest."""

import pytest

from tests.oracle.offset_sync_store import SLOTS, OffsetSyncStore


def store_with(*syncs: tuple[int, int]) -> OffsetSyncStore:
    store = OffsetSyncStore()
    for offsets in syncs:
        store.sync(*offsets)
    return store


def test_an_offset_is_translated_by_its_sync_or_to_one_past_the_latest_earlier_sync() -> None:
    store = store_with((100, 200))
    assert store.translate(150) == 201
    store.sync(150, 251)
    assert store.translate(150) == 251
    assert store.translate(5) == -1


def test_syncs_after_a_reset_of_either_end_are_used() -> None:
    store = store_with((100, 200), (150, 251), (200, 10))
    assert store.translate(200) == 10
    store.sync(20, 20)
    assert store.translate(20) == 20


def test_nothing_is_translated_before_the_topic_has_been_read() -> None:
    store = OffsetSyncStore(started=False)
    store.sync(100, 200)
    assert [store.translate(upstream) for upstream in (0, 100, 200)] == [None, None, None]
    store.started = True
    assert [store.translate(upstream) for upstream in (0, 100, 200)] == [-1, 200, 201]
    assert OffsetSyncStore().translate(0) is None


def test_older_syncs_are_sparser_and_none_from_before_the_start_is_kept() -> None:
    store = OffsetSyncStore(started=False)
    for offset in range(0, 1001, 10):
        store.sync(offset, offset)
    store.started = True
    kept = [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10000]
    for offset in range(1010, 10001, 10):
        store.sync(offset, offset)
    assert [sync.upstream for sync in store.kept()] == kept
    for earlier, upstream in zip([-2, *kept], kept, strict=False):
        assert [store.translate(upstream + n) for n in (-1, 0, 1, 2)] == [
            earlier + 1,
            upstream,
            upstream + 1,
            upstream + 1,
        ]
    store.sync(1500, 11000)
    assert [store.translate(upstream) for upstream in (1499, 1500, 2000)] == [-1, 11000, 11001]


@pytest.mark.parametrize("step", [1, 3, 7, 100, 2**40])
def test_a_new_sync_at_even_steps_drops_at_most_one_kept_sync(step: int) -> None:
    store = store_with((7, 7))
    before = 1
    for n in range(1, 101):
        store.sync(7 + n * step, 7 + n * step)
        kept = store.kept()
        assert kept[0].upstream == 7
        assert kept[-1].upstream == 7 + n * step
        assert before <= len(kept) <= SLOTS
        before = len(kept)
