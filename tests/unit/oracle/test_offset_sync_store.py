"""The vectors of Kafka's OffsetSyncStoreTest."""

import pytest

from tests.oracle.offset_sync_store import PLACES, OffsetSyncStore


def fed(*syncs: tuple[int, int]) -> OffsetSyncStore:
    store = OffsetSyncStore()
    for one in syncs:
        store.sync(*one)
    return store


def test_a_position_is_translated_to_its_sync_or_one_past_an_earlier_one() -> None:
    store = fed((100, 200))
    assert store.translate(150) == 201
    store.sync(150, 251)
    assert store.translate(150) == 251
    assert store.translate(5) == -1


def test_resets_at_either_end_are_followed() -> None:
    store = fed((100, 200), (150, 251), (200, 10))
    assert store.translate(200) == 10
    store.sync(20, 20)
    assert store.translate(20) == 20


def test_nothing_is_translated_before_its_topic_has_been_read() -> None:
    store = OffsetSyncStore(started=False)
    store.sync(100, 200)
    assert [store.translate(one) for one in (0, 100, 200)] == [None, None, None]
    store.started = True
    assert [store.translate(one) for one in (0, 100, 200)] == [-1, 200, 201]
    assert OffsetSyncStore().translate(0) is None


def test_the_older_the_sparser_and_nothing_from_before_the_start() -> None:
    store = OffsetSyncStore(started=False)
    for offset in range(0, 1001, 10):
        store.sync(offset, offset)
    store.started = True
    kept = [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10000]
    for offset in range(1010, 10001, 10):
        store.sync(offset, offset)
    assert [one.upstream for one in store.kept()] == kept
    for earlier, one in zip([-2, *kept], kept, strict=False):
        assert [store.translate(one + n) for n in (-1, 0, 1, 2)] == [earlier + 1, one, one + 1, one + 1]
    store.sync(1500, 11000)
    assert [store.translate(one) for one in (1499, 1500, 2000)] == [-1, 11000, 11001]


@pytest.mark.parametrize("step", [1, 3, 7, 100, 2**40])
def test_syncs_at_even_steps_cost_one_at_most_each(step: int) -> None:
    store = fed((7, 7))
    before = 1
    for n in range(1, 101):
        store.sync(7 + n * step, 7 + n * step)
        kept = store.kept()
        assert kept[0].upstream == 7
        assert kept[-1].upstream == 7 + n * step
        assert before <= len(kept) <= PLACES
        before = len(kept)
