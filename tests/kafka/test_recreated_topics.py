"""Clients of a topic that is deleted and created again with lower leader epochs, and led by other brokers.

Leader epochs grow with every election, so those of a topic that has been there for long are high. librdkafka
takes metadata with a lower epoch for old.
"""

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Thread

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    ClusterAdmin,
    DeliveryReport,
    FollowedReader,
    ProbeProducer,
    RecordProducer,
    TracerProducer,
    follow_topics,
    reassign_topic,
)
from fleetgauge_core.metadata import TopicChange
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60
BROKERS = (1, 2, 3)


class ElectedTopic:
    """A topic whose partition of each broker was led by every broker twice, so that its epochs are high."""

    def __init__(self, access: ClusterAccess, name: str) -> None:
        self.access = access
        self.name = name
        self.client = AdminClient({"bootstrap.servers": access.bootstrap})
        self.admin = ClusterAdmin(access)
        self.admin.start()

    def create(self, leaders: tuple[int, ...]) -> None:
        topic = NewTopic(self.name, len(leaders), replica_assignment=[[leader] for leader in leaders])
        self.client.create_topics([topic])[self.name].result()

    def elect(self) -> None:
        """Let every partition be led by each other broker in turn, and by its own again."""
        for shift in (1, 2, 0, 1, 2, 0):
            leaders = {partition: ((partition + shift) % 3 + 1,) for partition in range(3)}
            reassign = partial(reassign_topic, self.access, self.name, leaders)
            wait_until(reassign, DEADLINE_S, "the reassignment before")
            wait_until(partial(self.is_led_by, leaders), DEADLINE_S, "the new leaders")

    def is_led_by(self, leaders: dict[int, tuple[int, ...]]) -> bool:
        topic = self.admin.describe_topic(self.name)
        return topic is not None and leaders == {
            number: partition.replicas
            for number, partition in topic.partitions.items()
            if partition.replicas == (partition.leader,)
        }

    def replace(self, leaders: tuple[int, ...]) -> None:
        self.client.delete_topics([self.name])[self.name].result()
        self.create(leaders)


@pytest.fixture
def topic(local_fleet: LocalFleet) -> ElectedTopic:
    topic = ElectedTopic(ClusterAccess(local_fleet.bootstrap("orders")), f"elected-{uuid.uuid4().hex[:8]}")
    topic.create(BROKERS)
    topic.elect()
    return topic


@pytest.fixture
def changes() -> list[TopicChange]:
    return []


@pytest.fixture
def reader(topic: ElectedTopic, changes: list[TopicChange]) -> Iterator[FollowedReader]:
    """A reader of all records, to which the topic's changes are told by a thread of its own."""
    reader = FollowedReader(topic.access, topic.name, "elected", changes.append)
    reader.start()
    reader.assign(reader.wait_for_partitions(), from_beginning=True)
    stopping = Event()
    following = Thread(target=follow_topics, args=(topic.access, [reader], stopping))
    following.start()
    yield reader
    stopping.set()
    following.join()
    reader.stop()


def read_values(reader: FollowedReader, values: set[bytes]) -> Callable[[], bool]:
    """Return a condition that reads on, and is true once the values have been read."""
    missing = set(values)

    def is_read() -> bool:
        if record := reader.poll(0.1):
            missing.discard(record.value)
        return not missing

    return is_read


def test_records_are_sent_and_read_after_their_topic_was_replaced(
    topic: ElectedTopic, reader: FollowedReader, changes: list[TopicChange]
) -> None:
    producer = RecordProducer(topic.access, "elected")
    producer.start()

    def send(prefix: str) -> set[bytes]:
        values = [f"{prefix}-{number}" for number in range(20)]
        for value in values:
            producer.send(topic.name, value, value.encode())
        return {value.encode() for value in values}

    wait_until(read_values(reader, send("before")), DEADLINE_S, "the old topic's records")
    topic.replace((2, 3, 1))
    # A broker that does not know yet may still accept these for the old topic.
    send("between")
    wait_until(lambda: bool(changes), DEADLINE_S, "the new topic")
    producer.renew()
    wait_until(read_values(reader, send("after")), DEADLINE_S, "the new topic's records")
    wait_until(lambda: producer.delivered == 60, DEADLINE_S, "all acknowledgements")
    assert producer.stop() == producer.failed == 0


def test_probes_are_acknowledged_after_their_topic_was_replaced(topic: ElectedTopic) -> None:
    results: list[str | None] = []
    producer = ProbeProducer(topic.access, topic.name, "all", lambda *_: None)
    producer.start()

    def send() -> None:
        results.clear()
        for partition in range(3):
            producer.send(partition, b"probe", lambda _, code: results.append(code))

    send()
    wait_until(lambda: results == [None] * 3, DEADLINE_S, "the old topic's acknowledgements")
    topic.replace((2, 3, 1))
    send()
    producer.renew()
    wait_until(lambda: len(results) == 3, DEADLINE_S, "the reports on the probes in flight")
    send()
    wait_until(lambda: results == [None] * 3, DEADLINE_S, "the new topic's acknowledgements")
    producer.stop()


def test_tracers_are_acknowledged_after_their_topic_was_replaced(topic: ElectedTopic) -> None:
    reports: list[DeliveryReport] = []
    producer = TracerProducer(topic.access, topic.name, "elected")
    producer.start()

    def is_acknowledged() -> bool:
        producer.send({}, reports.append)
        producer.poll(0.1)
        return any(report.failure is None for report in reports)

    wait_until(is_acknowledged, DEADLINE_S, "the old topic's acknowledgement")
    topic.replace((2, 3, 1))
    reports.clear()
    producer.renew()
    wait_until(is_acknowledged, DEADLINE_S, "the new topic's acknowledgement")
    producer.stop()
