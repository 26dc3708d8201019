import pytest

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_probes.agent.demotions import DemotionCache

SECOND_NS = 1_000_000_000
NONE = frozenset[int]()
BROKER_2 = frozenset({2})


class MarkStore:
    """Demotion marks that a test sets; counts how often they are read."""

    def __init__(self) -> None:
        self.marks: dict[int, bool] = {}
        self.is_unavailable = False
        self.reads = 0

    def __call__(self) -> dict[int, bool]:
        self.reads += 1
        if self.is_unavailable:
            raise KafkaUnavailableError("no answer")
        return self.marks


@pytest.fixture
def store() -> MarkStore:
    return MarkStore()


@pytest.fixture
def cache(store: MarkStore) -> DemotionCache:
    return DemotionCache("orders", store)


def test_marks_are_not_read_while_every_broker_has_a_home(cache: DemotionCache, store: MarkStore) -> None:
    for second in range(100):
        cache.refresh(NONE, second * SECOND_NS)
    assert store.reads == 0


def test_marks_are_read_at_once_when_a_broker_loses_its_home(cache: DemotionCache, store: MarkStore) -> None:
    store.marks = {2: True}
    cache.refresh(BROKER_2, SECOND_NS)
    assert cache.demoted == BROKER_2


def test_marks_are_read_again_after_ten_seconds_or_for_another_broker(
    cache: DemotionCache, store: MarkStore
) -> None:
    for second in range(20):
        cache.refresh(BROKER_2, second * SECOND_NS)
    assert store.reads == 2
    cache.refresh(frozenset({2, 3}), 20 * SECOND_NS - 1)
    assert store.reads == 3


def test_a_removed_mark_is_noticed_and_then_no_marks_are_read(cache: DemotionCache, store: MarkStore) -> None:
    store.marks = {2: True}
    cache.refresh(BROKER_2, 0)
    store.marks = {2: False}
    for second in range(1, 100):
        cache.refresh(NONE, second * SECOND_NS)
    assert (cache.demoted, store.reads) == (NONE, 2)


def test_unreadable_marks_leave_the_previous_ones_and_are_logged_once(
    cache: DemotionCache, store: MarkStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.marks = {2: True}
    cache.refresh(BROKER_2, 0)
    store.is_unavailable = True
    for second in range(10, 40, 10):
        cache.refresh(NONE, second * SECOND_NS)
    assert cache.demoted == BROKER_2
    assert [record.getMessage() for record in caplog.records] == [
        "orders: demotion marks cannot be read, keeping the previous ones: no answer"
    ]


def test_a_mark_that_was_lost_with_its_topic_is_kept(cache: DemotionCache, store: MarkStore) -> None:
    store.marks = {2: True}
    cache.refresh(BROKER_2, 0)
    store.marks = {3: True}
    cache.refresh(NONE, 10 * SECOND_NS)
    assert cache.demoted == {2, 3}
    store.marks = {2: False, 3: True}
    cache.refresh(NONE, 20 * SECOND_NS)
    assert cache.demoted == {3}
