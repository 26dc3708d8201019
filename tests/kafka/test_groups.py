"""Consumer groups of real brokers: where they are, who reads in them, and moving them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import (
    Committed,
    GroupHasMembersError,
    Groups,
    KafkaUnavailableError,
    Place,
)
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60
TOPIC = "groups-read-it"
#: More than one request asks for.
MANY = 600


@pytest.fixture(scope="module")
def bootstrap(local_fleet: LocalFleet) -> str:
    """Of a cluster with the topic, of two partitions and a record each."""
    address = local_fleet.bootstrap("orders")
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 2, 3)])[TOPIC].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for partition in (0, 1):
        producer.produce(TOPIC, b"one", partition=partition)
    assert producer.flush(DEADLINE_S) == 0
    return address


@pytest.fixture
def groups(bootstrap: str) -> Iterator[Groups]:
    with asked(bootstrap) as groups:
        yield groups


@contextmanager
def asked(bootstrap: str, timeout_s: float = DEADLINE_S) -> Iterator[Groups]:
    groups = Groups(Access(bootstrap), "tests", timeout_s)
    groups.start()
    try:
        yield groups
    finally:
        groups.stop()


def at(*offsets: int, metadata: str = "") -> dict[Place, Committed]:
    return {Place(TOPIC, number): Committed(offset, metadata) for number, offset in enumerate(offsets)}


def test_what_is_set_is_what_a_client_goes_on_from_and_what_is_read_back(
    bootstrap: str, groups: Groups
) -> None:
    assert groups.commit("set", at(1, 0, metadata="by hand")) == {}
    assert groups.committed(["set", "nobody"]) == {"set": at(1, 0, metadata="by hand"), "nobody": {}}
    assert "set" in groups.names()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "set", "log_level": 0})
    try:
        found = consumer.committed([TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)], DEADLINE_S)
    finally:
        consumer.close()
    assert [one.offset for one in found] == [1, 0]


def test_of_a_partition_that_is_not_there_it_is_said(groups: Groups) -> None:
    wanted = at(1) | {Place("no-such-topic", 0): Committed(1)}
    assert groups.commit("half", wanted) == {Place("no-such-topic", 0): "UNKNOWN_TOPIC_OR_PARTITION"}
    assert groups.committed(["half"]) == {"half": at(1)}


def test_of_many_groups_each_has_its_own(groups: Groups) -> None:
    names = [f"one-of-many-{number}" for number in range(MANY)]
    for number, name in enumerate(names[:3]):
        groups.commit(name, at(0, number))
    found = groups.committed(names)
    assert set(found) == set(names)
    assert [found[name] for name in names[:4]] == [at(0, 0), at(0, 1), at(0, 2), {}]
    assert groups.committed([]) == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_in_which_somebody_reads_is_theirs(bootstrap: str, groups: Groups, protocol: str) -> None:
    """Of KIP-848's protocol too, of whose groups the older request for members says that there are none."""
    name = f"read-{protocol}"
    assert groups.connected([name]) == frozenset()
    settings = {"group.id": name, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    consumer.subscribe([TOPIC])
    try:
        wait_until(lambda: consumer.poll(0.2) is not None, DEADLINE_S, "a record")
        assert groups.connected([name, "nobody"]) == {name}
        with pytest.raises(GroupHasMembersError):
            groups.commit(name, at(0, 0))
    finally:
        consumer.close()
    wait_until(lambda: not groups.connected([name]), DEADLINE_S, "nobody to read")
    assert groups.commit(name, at(1, 1)) == {}


def test_coordinators_that_hang_and_answer_after_all_end_nobody(
    bootstrap: str, breakable_fleet: LocalFleet
) -> None:
    """Librdkafka's client aborts the process then, whichever of these it was asked."""
    with asked(bootstrap, timeout_s=2) as groups:
        groups.commit("waits", at(1, 0))
        questions = (
            lambda: groups.committed(["waits"]),
            lambda: groups.connected(["waits"]),
            lambda: groups.commit("waits", at(1, 1)),
        )
        for broker in (1, 2, 3):
            breakable_fleet.fault("hang", "orders", broker)
        for question in questions:
            with pytest.raises(KafkaUnavailableError):
                question()
        for broker in (1, 2, 3):
            breakable_fleet.fault("heal", "orders", broker)
        breakable_fleet.wait_ready()

        def answers() -> bool:
            try:
                return groups.committed(["waits"])["waits"] in (at(1, 0), at(1, 1))
            except KafkaUnavailableError:
                return False

        wait_until(answers, DEADLINE_S, "an answer")
