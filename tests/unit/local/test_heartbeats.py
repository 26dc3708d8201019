"""Against librdkafka's own mock of a cluster, which takes and gives away real batches."""

import struct
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from fleetgauge_local.heartbeats import Address, crc32c, has_come_through
from fleetgauge_local.layout import Route

ROUTE = Route("north", "north-all")
DEADLINE_S = 20
NOBODY = ("127.0.0.1", 1)


@pytest.fixture
def mock() -> Iterator[Address]:
    """A broker with the topic; a mock makes topics for whoever asks with a client."""
    producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=DEADLINE_S).brokers.values()
    producer.produce("heartbeats", b"first", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    yield str(broker.host), int(broker.port)
    # The mock lives as long as its producer.
    producer.purge()


def second_record(address: Address) -> Message:
    client = {"bootstrap.servers": "{}:{}".format(*address), "group.id": "heartbeats", "log_level": 0}
    consumer = Consumer(client)
    consumer.assign([TopicPartition("heartbeats", 0, 1)])
    message = consumer.poll(DEADLINE_S)
    consumer.close()
    assert message is not None
    assert message.error() is None
    return message


def test_a_heartbeat_is_written_as_mirror_maker_writes_its_own(mock: Address) -> None:
    before_ms = time.time_ns() // 1_000_000
    assert not has_come_through(ROUTE, [mock], [NOBODY], before_ms)
    message = second_record(mock)
    assert message.key() == b"\x00\x09north-all\x00\x05north"
    version, at_ms = struct.unpack(">hq", message.value() or b"")
    assert version == 0
    assert message.timestamp()[1] == at_ms
    assert before_ms <= at_ms <= time.time_ns() // 1_000_000


def test_where_nobody_answers_nothing_has_come_through() -> None:
    assert not has_come_through(ROUTE, [NOBODY], [NOBODY], 0)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
