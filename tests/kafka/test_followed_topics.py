"""Readers that follow a topic which is deleted, created anew, extended, or loses records."""

import uuid
from collections.abc import Iterator
from threading import Event, Thread

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    ClusterAdmin,
    FollowedReader,
    build_log_topic_spec,
    follow_topics,
)
from fleetgauge_core.metadata import OffsetGap, TopicChange, TopicChangeKind
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60


class Topic:
    """A topic with two partitions, and a reader that follows it in threads of its own."""

    def __init__(self, access: ClusterAccess) -> None:
        self.name = f"followed-{uuid.uuid4().hex[:8]}"
        self.client = AdminClient({"bootstrap.servers": access.bootstrap})
        self.admin = ClusterAdmin(access)
        self.admin.start()
        self.access = access
        self.changes: list[TopicChange] = []
        self.values: list[bytes] = []
        self.create()

    def create(self) -> None:
        spec = build_log_topic_spec(self.name, 2, 3_600_000, brokers=1)
        wait_until(lambda: self.admin.create_topic(spec), DEADLINE_S, "the old topic to be gone")

    def delete(self) -> None:
        self.client.delete_topics([self.name])[self.name].result()

    def send(self, *values: bytes, partition: int = 0) -> None:
        # A new one, because it knows added partitions at once.
        producer = Producer({"bootstrap.servers": self.access.bootstrap})
        for value in values:
            producer.produce(self.name, value, partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def start(self, offsets: dict[int, int], stopping: Event) -> FollowedReader:
        reader = FollowedReader(self.access, self.name, "follower", self.changes.append)
        reader.start()
        reader.wait_for_partitions()
        reader.assign_from(offsets)

        def poll() -> None:
            while not stopping.is_set():
                if record := reader.poll(0.1):
                    self.values.append(record.value)
            reader.stop()

        for run in (poll, lambda: follow_topics(self.access, (reader,), stopping)):
            Thread(target=run, daemon=True).start()
        return reader

    def kinds(self) -> list[TopicChangeKind]:
        return [change.kind for change in self.changes]


@pytest.fixture
def topic(local_fleet: LocalFleet) -> Topic:
    return Topic(ClusterAccess(local_fleet.bootstrap("telemetry")))


@pytest.fixture
def stopping() -> Iterator[Event]:
    stopping = Event()
    yield stopping
    stopping.set()


def test_a_topic_is_followed_through_its_deletion_a_new_one_and_more_partitions(
    topic: Topic, stopping: Event
) -> None:
    topic.send(*[b"old"] * 5)
    topic.start({0: 0, 1: 0}, stopping)
    wait_until(lambda: len(topic.values) == 5, DEADLINE_S, "the records")
    topic.delete()
    wait_until(lambda: topic.kinds() == [TopicChangeKind.DELETED], DEADLINE_S, "the deletion")
    topic.create()
    topic.send(b"new")
    wait_until(lambda: topic.values[5:] == [b"new"], DEADLINE_S, "the new topic")
    # Without a check in between, and at the next offset of the topic that was deleted.
    topic.delete()
    topic.create()
    topic.send(b"first", b"second")
    wait_until(lambda: topic.values[6:].count(b"first") == 1, DEADLINE_S, "its first record")
    topic.admin.add_partitions(topic.name, 3)
    wait_until(lambda: len(topic.kinds()) == 4, DEADLINE_S, "the partition")
    topic.send(b"added", partition=2)
    wait_until(lambda: b"added" in topic.values, DEADLINE_S, "a record of the added partition")
    assert topic.kinds()[1:] == [
        TopicChangeKind.RECREATED,
        TopicChangeKind.RECREATED,
        TopicChangeKind.PARTITIONS_ADDED,
    ]


def test_records_that_expired_before_they_were_read_are_counted_exactly(
    topic: Topic, stopping: Event
) -> None:
    topic.send(*[b"%d" % number for number in range(10)])
    topic.send(b"other", partition=1)
    for future in topic.client.delete_records([TopicPartition(topic.name, 0, 7)]).values():
        future.result()
    topic.start({0: 2, 1: 0}, stopping)
    wait_until(lambda: len(topic.values) == 4, DEADLINE_S, "the records that are left")
    assert sorted(topic.values) == [b"7", b"8", b"9", b"other"]
    (change,) = topic.changes
    assert (change.kind, change.lost, change.is_exact) == (
        TopicChangeKind.EXPIRED,
        (OffsetGap(0, 2, 7),),
        True,
    )


def test_a_position_beyond_the_end_of_the_log_is_named_and_reading_goes_on(
    topic: Topic, stopping: Event
) -> None:
    topic.send(b"before")
    topic.start({0: 50, 1: 0}, stopping)
    wait_until(lambda: topic.kinds() == [TopicChangeKind.TRUNCATED], DEADLINE_S, "the change")

    def is_read() -> bool:
        topic.send(b"after")
        return b"after" in topic.values

    wait_until(is_read, DEADLINE_S, "a record after the end")
    assert topic.kinds() == [TopicChangeKind.TRUNCATED]
