"""Consumer groups of real brokers: committed offsets, members, and setting offsets."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import CommittedOffset, ConsumerGroups, GroupHasMembersError, KafkaUnavailableError
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60
TOPIC = "read-by-groups"
#: More groups than one request contains.
MANY = 600


@pytest.fixture(scope="module")
def bootstrap(local_fleet: LocalFleet) -> str:
    """Return the bootstrap of a cluster with the topic: two partitions with one record each."""
    address = local_fleet.bootstrap("orders")
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 2, 3)])[TOPIC].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for partition in (0, 1):
        producer.produce(TOPIC, b"one", partition=partition)
    assert producer.flush(DEADLINE_S) == 0
    return address


@pytest.fixture
def groups(bootstrap: str) -> Iterator[ConsumerGroups]:
    with connect_groups(bootstrap) as groups:
        yield groups


@contextmanager
def connect_groups(bootstrap: str, timeout_s: float = DEADLINE_S) -> Iterator[ConsumerGroups]:
    groups = ConsumerGroups(ClusterAccess(bootstrap), "tests", timeout_s)
    groups.start()
    try:
        yield groups
    finally:
        groups.stop()


def build_offsets(*offsets: int, metadata: str = "") -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(TOPIC, number): CommittedOffset(offset, metadata)
        for number, offset in enumerate(offsets)
    }


def test_committed_offsets_are_read_back_and_used_by_a_consumer(
    bootstrap: str, groups: ConsumerGroups
) -> None:
    assert groups.commit_offsets("set", build_offsets(1, 0, metadata="by hand")) == {}
    assert groups.read_committed_offsets(["set", "nobody"]) == {
        "set": build_offsets(1, 0, metadata="by hand"),
        "nobody": {},
    }
    assert "set" in groups.list_group_ids()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "set", "log_level": 0})
    try:
        positions = consumer.committed(
            [ClientTopicPartition(TOPIC, 0), ClientTopicPartition(TOPIC, 1)], DEADLINE_S
        )
    finally:
        consumer.close()
    assert [position.offset for position in positions] == [1, 0]


def test_a_missing_partition_is_reported_and_the_others_are_committed(groups: ConsumerGroups) -> None:
    offsets = build_offsets(1) | {TopicPartition("no-such-topic", 0): CommittedOffset(1)}
    assert groups.commit_offsets("half", offsets) == {
        TopicPartition("no-such-topic", 0): "UNKNOWN_TOPIC_OR_PARTITION"
    }
    assert groups.read_committed_offsets(["half"]) == {"half": build_offsets(1)}


def test_offsets_of_more_groups_than_one_request_contains_are_read(groups: ConsumerGroups) -> None:
    names = [f"one-of-many-{number}" for number in range(MANY)]
    for number, name in enumerate(names[:3]):
        groups.commit_offsets(name, build_offsets(0, number))
    offsets = groups.read_committed_offsets(names)
    assert set(offsets) == set(names)
    assert [offsets[name] for name in names[:4]] == [
        build_offsets(0, 0),
        build_offsets(0, 1),
        build_offsets(0, 2),
        {},
    ]
    assert groups.read_committed_offsets([]) == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_group_with_members_cannot_be_committed(
    bootstrap: str, groups: ConsumerGroups, protocol: str
) -> None:
    """DescribeGroups reports no members for a group of KIP-848's protocol, so both protocols are tested."""
    name = f"read-{protocol}"
    assert groups.find_groups_with_members([name]) == frozenset()
    settings = {"group.id": name, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    consumer.subscribe([TOPIC])
    try:
        wait_until(lambda: consumer.poll(0.2) is not None, DEADLINE_S, "a record")
        assert groups.find_groups_with_members([name, "nobody"]) == {name}
        with pytest.raises(GroupHasMembersError):
            groups.commit_offsets(name, build_offsets(0, 0))
    finally:
        consumer.close()
    wait_until(lambda: not groups.find_groups_with_members([name]), DEADLINE_S, "the group to be empty")
    assert groups.commit_offsets(name, build_offsets(1, 1)) == {}


def test_a_coordinator_that_answers_late_does_not_end_the_process(
    bootstrap: str, breakable_fleet: LocalFleet
) -> None:
    """librdkafka's client would abort the process, for each of these requests."""
    with connect_groups(bootstrap, timeout_s=2) as groups:
        groups.commit_offsets("waits", build_offsets(1, 0))
        requests = (
            lambda: groups.read_committed_offsets(["waits"]),
            lambda: groups.find_groups_with_members(["waits"]),
            lambda: groups.commit_offsets("waits", build_offsets(1, 1)),
        )
        for broker in (1, 2, 3):
            breakable_fleet.fault("hang", "orders", broker)
        for request in requests:
            with pytest.raises(KafkaUnavailableError):
                request()
        for broker in (1, 2, 3):
            breakable_fleet.fault("heal", "orders", broker)
        breakable_fleet.wait_ready()

        def is_available() -> bool:
            try:
                return groups.read_committed_offsets(["waits"])["waits"] in (
                    build_offsets(1, 0),
                    build_offsets(1, 1),
                )
            except KafkaUnavailableError:
                return False

        wait_until(is_available, DEADLINE_S, "the coordinators")
