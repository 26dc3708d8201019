"""A range of offsets of a real partition is read completely or not at all: an incomplete read is an error."""

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import KafkaUnavailableError, read_record_range
from fleetgauge_local.fleet import LocalFleet

DEADLINE_S = 60
TOPIC = "record-range"


@pytest.fixture(scope="module")
def access(local_fleet: LocalFleet) -> ClusterAccess:
    """A cluster with a partition of five records and the marker of their transaction."""
    bootstrap = local_fleet.bootstrap("orders")
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "transactional.id": TOPIC})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    producer.commit_transaction(DEADLINE_S)
    return ClusterAccess(bootstrap)


def read_values(
    access: ClusterAccess, offsets: range, topic: str = TOPIC, timeout_s: float = DEADLINE_S
) -> list[bytes]:
    return [record.value for record in read_record_range(access, topic, 0, offsets, "tests", timeout_s)]


@pytest.mark.parametrize(
    ("offsets", "values"),
    [
        (range(5), [b"0", b"1", b"2", b"3", b"4"]),
        (range(1, 3), [b"1", b"2"]),
        # Offset 5 is the marker, which is not a record.
        (range(3, 6), [b"3", b"4"]),
        (range(5, 6), []),
        (range(4, 100), [b"4"]),
        (range(2, 2), []),
    ],
)
def test_exactly_the_records_of_the_range_are_read(
    access: ClusterAccess, offsets: range, values: list[bytes]
) -> None:
    assert read_values(access, offsets) == values


def test_a_missing_topic_is_an_error(access: ClusterAccess) -> None:
    with pytest.raises(KafkaUnavailableError, match="no-such-topic/0: "):
        read_values(access, range(3), "no-such-topic", timeout_s=10)


def test_a_range_that_begins_with_deleted_records_is_an_error(access: ClusterAccess) -> None:
    admin = AdminClient({"bootstrap.servers": access.bootstrap, "log_level": 0})
    deletions = admin.delete_records([TopicPartition(TOPIC, 0, 2)])
    next(iter(deletions.values())).result(DEADLINE_S)
    with pytest.raises(KafkaUnavailableError, match=f"{TOPIC}/0: "):
        read_values(access, range(3))
    assert read_values(access, range(2, 3)) == [b"2"]


def test_brokers_that_hang_are_an_error(access: ClusterAccess, breakable_fleet: LocalFleet) -> None:
    for broker in (1, 2, 3):
        breakable_fleet.fault("hang", "orders", broker)
    with pytest.raises(KafkaUnavailableError, match=f"{TOPIC}/0: no record within 3 s"):
        read_values(access, range(3), timeout_s=3)
