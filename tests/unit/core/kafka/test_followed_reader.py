"""A reader that is told what a cluster says of its topic, on a fake consumer."""

import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    ClusterAdmin,
    FollowedReader,
    KafkaUnavailableError,
    TopicMetadata,
    topic_reader,
)
from fleetgauge_core.metadata import PartitionMetadata, TopicChange, TopicChangeKind

ADMIN = cast("ClusterAdmin", None)


def topic(topic_id: str = "first") -> TopicMetadata:
    return TopicMetadata(topic_id, {0: PartitionMetadata(1, (1,), frozenset({1}))})


@dataclass
class FakeMessage:
    """A record at an offset of partition 0."""

    at: int

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return b""

    key = value

    def timestamp(self) -> tuple[int, int]:
        return 0, 0

    def headers(self) -> None:
        return None


@dataclass
class FakeConsumer:
    """Yields the records from the assigned offset to the end of the log."""

    end: int = 10
    next_offset: int | None = None
    assigned: list[int] = field(default_factory=list)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        (partition,) = partitions
        self.next_offset = partition.offset
        self.assigned.append(partition.offset)

    def close(self) -> None:
        self.next_offset = None

    def incremental_unassign(self, _: list[TopicPartition]) -> None:
        self.next_offset = None

    def poll(self, _: float) -> FakeMessage | None:
        if self.next_offset is None or self.next_offset >= self.end:
            return None
        self.next_offset += 1
        return FakeMessage(self.next_offset - 1)

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return 0, self.end


class Following:
    """A reader that has read its topic to the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.consumer = FakeConsumer()
        monkeypatch.setattr(topic_reader, "Consumer", lambda _: self.consumer)
        self.changes: list[TopicChange] = []
        self.reader = FollowedReader(ClusterAccess("kafka:9092"), "records", "follower", self.changes.append)
        self.reader.start()
        self.reader.assign_from({0: 0})
        self.check(topic())

    def check(self, *answers: TopicMetadata | None) -> None:
        """Give the reader these answers one after another, and let it read all that is there."""
        for answer in answers:
            self.reader.check(answer, ADMIN)
            while self.reader.poll(0):
                pass

    def kinds(self) -> list[TopicChangeKind]:
        return [change.kind for change in self.changes]


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> Following:
    return Following(monkeypatch)


def test_a_topic_that_is_unknown_to_one_broker_is_read_on(following: Following) -> None:
    following.check(None, topic(), None, topic())
    assert (following.changes, following.consumer.assigned) == ([], [0])


def test_a_topic_that_returns_with_the_same_id_is_read_on_where_it_was(following: Following) -> None:
    following.check(None, None, None, topic(), topic())
    assert following.kinds() == [TopicChangeKind.DELETED, TopicChangeKind.RETURNED]
    assert following.consumer.assigned == [0, 10]


def test_a_topic_that_was_deleted_and_created_again_is_read_from_its_beginning(following: Following) -> None:
    following.check(None, None, topic("second"), topic("second"))
    assert following.kinds() == [TopicChangeKind.DELETED, TopicChangeKind.RECREATED]
    assert following.consumer.assigned == [0, 0]


def test_a_topic_that_is_unknown_at_first_is_read_where_it_was_assigned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    following = Following(monkeypatch)
    reader = FollowedReader(ClusterAccess("kafka:9092"), "records", "follower", following.changes.append)
    following.reader = reader
    reader.start()
    reader.assign_from({0: 4})
    following.check(None, topic())
    assert (following.changes, following.consumer.assigned) == ([], [0, 4])


def test_a_reader_in_the_place_of_one_whose_topic_had_gone_keeps_its_own_positions(
    following: Following,
) -> None:
    following.check(None, None)
    reader = FollowedReader(
        ClusterAccess("kafka:9092"),
        "records",
        "follower",
        following.changes.append,
        following.reader.snapshot(),
    )
    following.reader = reader
    reader.start()
    reader.assign_from({0: 6})
    following.check(topic(), topic())
    assert following.kinds() == [TopicChangeKind.DELETED]
    assert following.consumer.assigned == [0, 6]


def test_a_consumer_that_cannot_be_created_is_created_at_a_later_poll(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [KafkaUnavailableError("the secret cannot be read")] * 2

    def create(_: object) -> FakeConsumer:
        if failures:
            raise failures.pop()
        return following.consumer

    monkeypatch.setattr(topic_reader, "Consumer", create)
    monkeypatch.setattr(topic_reader, "_RETRY_S", 0)
    following.check(None, None, None, topic("second"), topic("second"), topic("second"))
    assert following.kinds() == [TopicChangeKind.DELETED, TopicChangeKind.RECREATED]
    assert [change.lost for change in following.changes] == [(), ()]
    assert following.consumer.assigned == [0, 0]


def test_a_recreated_topic_is_read_with_a_second_new_consumer_where_the_first_one_was(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.monotonic()
    following.check(topic("second"), topic("second"))
    assert following.consumer.assigned == [0, 0]
    for after_s, assigned in ((10, [0, 0]), (20, [0, 0, 10]), (60, [0, 0, 10])):
        monkeypatch.setattr(time, "monotonic", lambda after_s=after_s: now_s + after_s)
        following.check(topic("second"))
        assert following.consumer.assigned == assigned
