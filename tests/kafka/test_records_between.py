"""What lies between two offsets of a real partition: all of it, or an error, and never a part of it."""

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import KafkaUnavailableError, records_between
from fleetgauge_local.fleet import LocalFleet

DEADLINE_S = 60
TOPIC = "records-between"


@pytest.fixture(scope="module")
def access(local_fleet: LocalFleet) -> Access:
    """Five records and the marker of their transaction."""
    bootstrap = local_fleet.bootstrap("orders")
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "transactional.id": TOPIC})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    producer.commit_transaction(DEADLINE_S)
    return Access(bootstrap)


def values(access: Access, span: range, topic: str = TOPIC, timeout_s: float = DEADLINE_S) -> list[bytes]:
    return [one.value for one in records_between(access, topic, 0, span, "tests", timeout_s)]


@pytest.mark.parametrize(
    ("span", "found"),
    [
        (range(5), [b"0", b"1", b"2", b"3", b"4"]),
        (range(1, 3), [b"1", b"2"]),
        # The marker is at 5, and is no record.
        (range(3, 6), [b"3", b"4"]),
        (range(5, 6), []),
        (range(4, 100), [b"4"]),
        (range(2, 2), []),
    ],
)
def test_all_that_lies_there_and_no_more(access: Access, span: range, found: list[bytes]) -> None:
    assert values(access, span) == found


def test_what_cannot_be_read_is_no_end(access: Access) -> None:
    with pytest.raises(KafkaUnavailableError, match="no-such-topic/0: "):
        values(access, range(3), "no-such-topic", timeout_s=10)


def test_what_expired_meanwhile_is_no_end(access: Access) -> None:
    admin = AdminClient({"bootstrap.servers": access.bootstrap, "log_level": 0})
    gone = admin.delete_records([TopicPartition(TOPIC, 0, 2)])
    next(iter(gone.values())).result(DEADLINE_S)
    with pytest.raises(KafkaUnavailableError, match=f"{TOPIC}/0: "):
        values(access, range(3))
    assert values(access, range(2, 3)) == [b"2"]


def test_silence_is_no_end(access: Access, breakable_fleet: LocalFleet) -> None:
    for broker in (1, 2, 3):
        breakable_fleet.fault("hang", "orders", broker)
    with pytest.raises(KafkaUnavailableError, match=f"{TOPIC}/0: no record within 3 s"):
        values(access, range(3), timeout_s=3)
