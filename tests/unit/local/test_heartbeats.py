"""Heartbeats against librdkafka's mock cluster, which accepts and returns real record batches."""

import struct
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from fleetgauge_local.heartbeats import Address, crc32c, has_replicated_since
from fleetgauge_local.layout import ReplicationRoute

ROUTE = ReplicationRoute("north", "north-all")
DEADLINE_S = 20
UNREACHABLE = ("127.0.0.1", 1)


@pytest.fixture
def mock() -> Iterator[Address]:
    """A mock broker with the topic, which the mock creates when a client produces to it."""
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


def test_a_heartbeat_has_the_format_of_mirror_makers_heartbeats(mock: Address) -> None:
    before_ms = time.time_ns() // 1_000_000
    assert not has_replicated_since(ROUTE, [mock], [UNREACHABLE], before_ms)
    message = second_record(mock)
    assert message.key() == b"\x00\x09north-all\x00\x05north"
    version, at_ms = struct.unpack(">hq", message.value() or b"")
    assert version == 0
    assert message.timestamp()[1] == at_ms
    assert before_ms <= at_ms <= time.time_ns() // 1_000_000


def test_nothing_is_replicated_if_no_broker_responds() -> None:
    assert not has_replicated_since(ROUTE, [UNREACHABLE], [UNREACHABLE], 0)


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
