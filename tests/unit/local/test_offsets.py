"""Against librdkafka's own mock of a cluster, which keeps real groups' offsets."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from fleetgauge_local.offsets import Address, addresses, commit, committed

DEADLINE_S = 20
NOBODY = ("127.0.0.1", 1)


@pytest.fixture
def mock() -> Iterator[Address]:
    """A broker with the topic; a mock makes topics for whoever asks with a client."""
    producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=DEADLINE_S).brokers.values()
    producer.produce("orders", b"first", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    yield str(broker.host), int(broker.port)
    # The mock lives as long as its producer.
    producer.purge()


def as_a_client_sees_them(address: Address, group: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": "{}:{}".format(*address), "group.id": group, "log_level": 0})
    try:
        wanted = [TopicPartition("orders", partition) for partition in (0, 1)]
        return [one.offset for one in consumer.committed(wanted, DEADLINE_S)]
    finally:
        consumer.close()


def test_a_client_goes_on_where_it_was_set_and_so_do_we(mock: Address) -> None:
    assert committed([mock], "billing", "orders", (0, 1, 2)) == {}
    commit([mock], "billing", "orders", {0: 41, 1: 7})
    assert as_a_client_sees_them(mock, "billing") == [41, 7]
    commit([NOBODY, mock], "billing", "orders", {1: 8})
    assert committed([NOBODY, mock], "billing", "orders", (0, 1, 2)) == {0: 41, 1: 8}
    assert committed([mock], "ledger", "orders", (0,)) == {}


def test_where_nobody_answers_it_says_so() -> None:
    with pytest.raises(OSError, match="refused"):
        committed([NOBODY], "billing", "orders", (0,))
    with pytest.raises(OSError, match="refused"):
        commit([NOBODY], "billing", "orders", {0: 1})


def test_what_a_coordinator_refuses_is_an_error(mock: Address) -> None:
    with pytest.raises(OSError, match=r"the coordinator of billing answers with Kafka's error 3\b"):
        commit([mock], "billing", "no-such-topic", {0: 1})


def test_the_addresses_are_those_of_the_bootstrap() -> None:
    assert addresses("127.0.0.1:20001, 127.0.0.1:20002") == (("127.0.0.1", 20001), ("127.0.0.1", 20002))
