"""Each kind of change, made to happen on real brokers, and what is near to it but no change."""

import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from fleetgauge_core.kafka import TopicSpec
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.log_directories import lose_directory, two_log_directories
from tests.observed import Document, ObservedCluster, now, observing
from tests.waiting import let_pass, wait_until

CLUSTER = "observed"
DEADLINE_S = 90
#: A broker that does not get a processor for some seconds is fenced for a moment.
OF_A_BUSY_MACHINE = {"broker_fenced", "broker_unfenced", "leadership_moved", "controller_moved"}
_numbers = count(1)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedCluster]:
    """A cluster of three brokers and a spare one, in which ACLs may be set, and its observer."""
    folder = tmp_path_factory.mktemp("observed")
    clusters = (ClusterSpec(CLUSTER, brokers=3, spares=1), ClusterSpec("telemetry", brokers=1))
    with pytest.MonkeyPatch.context() as patch, two_log_directories():
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        patch.setitem(properties._BEHAVIOR, "authorizer.class.name", authorizer)
        patch.setitem(properties._BEHAVIOR, "super.users", "User:ANONYMOUS")
        with (
            LocalFleet(folder / "fleet", clusters) as local,
            observing(local, folder / "observer", CLUSTER) as cluster,
        ):
            yield cluster


@pytest.fixture
def topic(observed: ObservedCluster) -> str:
    """A new topic with a partition on each broker."""
    name = f"topic-{next(_numbers)}"
    began = now()
    observed.admin.create_topic(TopicSpec(name, assignment=[[1, 2], [2, 3], [3, 1]]))
    observed.expect(began, kind="topic_created", topic=name)
    return name


def kinds(documents: list[Document]) -> list[str]:
    return [document["kind"] for document in documents]


def test_topics_settings_quotas_acls_and_features_are_found_with_their_values(
    observed: ObservedCluster, topic: str
) -> None:
    admin, began = observed.admin, now()
    admin.create_topic(TopicSpec("short-lived", {"retention.ms": "60000"}, 2, 2))
    admin.add_partitions(topic, 4)
    admin.set_topic_setting(topic, "retention.ms", "3600000")
    admin.set_broker_setting(2, "log.cleaner.threads", "2")
    observed.set_default("num.replica.fetchers", "2")
    observed.set_quota("alice", {"producer_byte_rate": 1000.0})
    create_acl(observed, "User:bob")
    created = observed.expect(began, kind="topic_created", topic="short-lived")
    assert (created["before"], created["after"]["partitions"]) == (None, 2)
    assert created["after"]["replication_factor"] == [2]
    added = observed.expect(began, kind="partitions_added", topic=topic)
    assert (added["before"], added["after"]) == ({"partitions": 3}, {"partitions": 4})
    by_topic = observed.expect(began, kind="setting_changed", topic=topic)
    assert (by_topic["before"], by_topic["after"]) == ({"retention.ms": None}, {"retention.ms": "3600000"})
    by_broker = observed.expect(began, kind="setting_changed", broker=2)
    assert by_broker["after"] == {"log.cleaner.threads": "2"}
    shared = observed.expect(began, kind="setting_changed", broker=None, topic=None)
    assert (shared["before"], shared["after"]) == (
        {"num.replica.fetchers": None},
        {"num.replica.fetchers": "2"},
    )
    quota = observed.expect(began, kind="quota_changed")
    assert (quota["before"], quota["after"]) == (None, {"producer_byte_rate": 1000.0})
    assert quota["evidence"] == {"entity": "user=alice"}
    acls = observed.expect(began, kind="acls_changed")
    assert (acls["before"], acls["after"]) == ({"bindings": 0}, {"bindings": 1})
    # Of one change each there is one record: the default of all brokers is that of none of them.
    assert len([row for row in observed.since(began) if row["kind"] == "setting_changed"]) == 3

    began = now()
    old_id = admin.describe_topic("short-lived")
    wait_for(observed.client.delete_topics(["short-lived"]))
    wait_until(lambda: admin.describe_topic("short-lived") is None, DEADLINE_S, "the deletion")
    admin.create_topic(TopicSpec("short-lived", {}, 1, 1))
    # An alteration that changes nothing: the value that is set, and the one that is inherited.
    admin.set_topic_setting(topic, "retention.ms", "3600000")
    admin.set_topic_setting(topic, "cleanup.policy", "delete")
    observed.set_quota("alice", {"producer_byte_rate": None})
    delete_acls(observed)
    recreated = observed.expect(began, kind="topic_recreated", topic="short-lived")
    assert old_id is not None
    # librdkafka writes IDs in another alphabet than Kafka's own tools.
    earlier_id = old_id.topic_id.replace("+", "-").replace("/", "_")
    assert recreated["before"]["topic_id"] == earlier_id != recreated["after"]["topic_id"]
    assert observed.expect(began, kind="quota_changed")["after"] is None
    assert observed.expect(began, kind="acls_changed")["evidence"] == {"added": 0, "removed": 1}
    observed.wait_for_look(2)
    seen = set(kinds(observed.since(began))) - OF_A_BUSY_MACHINE
    assert seen == {"acls_changed", "quota_changed", "topic_recreated"}

    began = now()
    wait_for(observed.client.delete_topics(["short-lived"]))
    observed.set_default("num.replica.fetchers", None)
    admin.set_broker_setting(2, "log.cleaner.threads", None)
    deleted = observed.expect(began, kind="topic_deleted", topic="short-lived")
    assert (deleted["before"]["partitions"], deleted["after"]) == (1, None)
    assert observed.expect(began, kind="setting_changed", broker=2)["after"] == {"log.cleaner.threads": None}
    observed.expect(began, kind="setting_changed", broker=None, topic=None)


def test_reassignments_orders_and_throttles_are_found_from_begin_to_end(
    observed: ObservedCluster, topic: str
) -> None:
    fill(observed, topic, 0, 4_000_000)
    admin, began = observed.admin, now()
    partition = TopicPartition(topic, 0)
    admin.set_topic_setting(topic, "leader.replication.throttled.replicas", "*")
    admin.set_topic_setting(topic, "follower.replication.throttled.replicas", "*")
    for broker_id in (1, 2, 3):
        admin.set_broker_setting(broker_id, "leader.replication.throttled.rate", "20000")
        admin.set_broker_setting(broker_id, "follower.replication.throttled.rate", "20000")
    observed.reassign({partition: [1, 3]})
    throttled = observed.expect(began, kind="throttle", broker=3, phase="begun")
    assert list(throttled["after"].values()) == ["20000"]
    assert throttled["evidence"]["owner"] in ("another tool", "unknown")
    begun = observed.expect(began, kind="reassignment", phase="begun")
    assert (begun["before"], begun["after"]) == ({f"{topic}-0": [1, 2]}, {f"{topic}-0": [1, 3]})
    assert (begun["ends"], begun["evidence"]["brokers"]) == (None, [2, 3])

    began = now()
    observed.reassign({partition: None})
    cancelled = observed.expect(began, kind="reassignment", phase="cancelled")
    assert cancelled["change_id"] == begun["change_id"]
    assert set(cancelled["after"][f"{topic}-0"]) == {1, 2}

    began = now()
    observed.reassign({partition: [1, 3]})
    observed.expect(began, kind="reassignment", phase="begun")
    for broker_id in (1, 2, 3):
        admin.set_broker_setting(broker_id, "leader.replication.throttled.rate", "50000000")
        admin.set_broker_setting(broker_id, "follower.replication.throttled.rate", "50000000")
    changed = observed.expect(began, kind="throttle", broker=1, phase="progress")
    assert (list(changed["before"].values()), list(changed["after"].values())) == (["20000"], ["50000000"])
    ended = observed.expect(began, kind="reassignment", phase="ended")
    assert (ended["after"], ended["evidence"]["outcomes"]) == ({f"{topic}-0": [1, 3]}, {"done": 1})

    began = now()
    for broker_id in (1, 2, 3):
        admin.set_broker_setting(broker_id, "leader.replication.throttled.rate", None)
        admin.set_broker_setting(broker_id, "follower.replication.throttled.rate", None)
    for side in ("leader", "follower"):
        admin.set_topic_setting(topic, f"{side}.replication.throttled.replicas", None)
    # Another order, and a third replica: small ones are done before anybody looks.
    observed.reassign({TopicPartition(topic, 1): [3, 2], TopicPartition(topic, 2): [3, 1, 2]})
    cleared = observed.expect(began, kind="throttle", broker=3, phase="ended")
    assert list(cleared["after"].values()) == [None]
    moved = observed.expect(began, kind="reassignment", phase="ended")
    assert moved["before"] == {f"{topic}-1": [2, 3], f"{topic}-2": [3, 1]}
    assert moved["after"] == {f"{topic}-1": [3, 2], f"{topic}-2": [3, 1, 2]}
    factor = observed.expect(began, kind="replication_factor", topic=topic)
    assert (factor["before"], factor["after"]) == (
        {"replication_factor": [2]},
        {"replication_factor": [2, 3]},
    )
    admin.elect_preferred_leaders_of_topic(topic, [1])
    balanced = observed.expect(began, kind="leadership_moved")
    assert (balanced["evidence"]["balanced"], balanced["evidence"]["gained"]) == (1, {"3": 1})


def test_restarts_are_told_from_cuts_and_hangs(observed: ObservedCluster, topic: str) -> None:
    local, began = observed.local, now()
    local.restart(CLUSTER, 2)
    restarted = observed.expect(began, kind="broker_restarted", broker=2)
    assert restarted["evidence"]["orderly"] is True
    signs = restarted["evidence"]["signs"]
    assert "connection_ended" in signs
    assert len(signs) > 1
    assert restarted["starts"] < restarted["ends"]
    observed.expect(began, kind="broker_unfenced", broker=2)
    local.fault("blackhole", CLUSTER, 1)
    cut_s = now().timestamp()
    observed.expect(began, kind="leadership_moved")
    let_pass_until(cut_s + 10)
    local.fault("heal", CLUSTER, 1)
    local.fault("kill", CLUSTER, 3)
    observed.expect(began, kind="broker_fenced", broker=3)
    local.fault("heal", CLUSTER, 3)
    crashed = observed.expect(began, kind="broker_restarted", broker=3)
    assert crashed["evidence"]["orderly"] is False
    local.wait_ready()
    hung_at = now()
    local.fault("hang", CLUSTER, 1, for_s=30)
    observed.expect(hung_at, kind="broker_fenced", broker=1)
    observed.expect(hung_at, kind="broker_unfenced", broker=1)
    observed.wait_for_look(2)
    assert sorted(find_restarts(observed, began)) == [2, 3]
    # A hang, a restart and a crash are no change of a topic, a setting or a replica.
    assert set(kinds(observed.since(began))) - OF_A_BUSY_MACHINE == {"broker_restarted"}


@pytest.mark.thorough
def test_five_restarts_are_five_and_a_feature_level_is_found(observed: ObservedCluster, topic: str) -> None:
    began = now()
    for number in range(1, 6):
        observed.local.restart(CLUSTER, 2)
        wait_for_restarts(observed, began, number)
        observed.local.wait_ready()
    observed.wait_for_look(2)
    assert find_restarts(observed, began) == [2] * 5
    began = now()
    observed.set_feature_level("group.version", 0)
    level = observed.expect(began, kind="feature_level")
    assert (level["before"], level["after"]) == ({"group.version": 1}, {"group.version": None})
    observed.set_feature_level("group.version", 1)


@pytest.mark.thorough
def test_a_broker_that_comes_back_with_empty_directories_is_replaced(
    observed: ObservedCluster, topic: str
) -> None:
    local, folder = observed.local, Path(observed.local.status().directory) / "brokers" / f"{CLUSTER}-3"
    fill(observed, topic, 2, 80_000_000)
    # Sizes are read every five minutes: a restart makes the observer read them.
    began = now()
    local.restart(CLUSTER, 3)
    observed.expect(began, kind="broker_restarted", broker=3)
    local.wait_ready()
    began = now()
    observed.admin.set_topic_setting(topic, "follower.replication.throttled.replicas", "*")
    observed.admin.set_broker_setting(3, "follower.replication.throttled.rate", "100000")
    local.fault("kill", CLUSTER, 3)
    observed.expect(began, kind="broker_fenced", broker=3)
    for directory in ("data", "second"):
        for path in (folder / directory).iterdir():
            if path.name.startswith("topic-"):
                shutil.rmtree(path)
    local.fault("heal", CLUSTER, 3)
    replaced = observed.expect(began, kind="broker_replaced", broker=3)
    assert replaced["after"]["stored_bytes"] < replaced["before"]["stored_bytes"] / 10
    observed.admin.set_broker_setting(3, "follower.replication.throttled.rate", None)
    observed.admin.set_topic_setting(topic, "follower.replication.throttled.replicas", None)


def test_a_broker_that_joins_and_leaves_and_one_with_another_rack_are_found(
    observed: ObservedCluster, topic: str
) -> None:
    local, began = observed.local, now()
    folder = Path(local.status().directory) / "brokers"
    local.fault("heal", CLUSTER, 4)
    registered = observed.expect(began, kind="broker_registered", broker=4)
    assert (registered["before"], registered["after"]["rack"]) == (None, "z1")
    local.wait_ready()
    settings = folder / f"{CLUSTER}-3" / "server.properties"
    settings.write_text(settings.read_text().replace("broker.rack=z3", "broker.rack=z9"))
    local.restart(CLUSTER, 3)
    rack = observed.expect(began, kind="broker_rack", broker=3)
    assert (rack["before"], rack["after"]) == ({"rack": "z3"}, {"rack": "z9"})
    lose_directory(folder / f"{CLUSTER}-4" / "second")
    observed.admin.create_topic(TopicSpec("on-four", assignment=[[4]] * 8))
    offline = observed.expect(began, kind="log_dir_offline", broker=4)
    assert [Path(path).name for path in offline["after"]["offline"]] == ["second"]
    observed.admin.set_broker_setting(1, "cordoned.log.dirs", str(folder / f"{CLUSTER}-1" / "second"))
    cordoned = observed.expect(began, kind="broker_cordoned", broker=1)
    assert [Path(path).name for path in cordoned["after"]["cordoned"]] == ["second"]
    observed.admin.set_broker_setting(1, "cordoned.log.dirs", None)
    observed.expect(began, kind="broker_uncordoned", broker=1)
    wait_for(observed.client.delete_topics(["on-four"]))
    local.fault("kill", CLUSTER, 4)
    observed.expect(began, kind="broker_fenced", broker=4)
    observed.unregister(4)
    unregistered = observed.expect(began, kind="broker_unregistered", broker=4)
    assert (unregistered["before"]["fenced"], unregistered["after"]) == (True, None)


def wait_for_restarts(observed: ObservedCluster, began: datetime, number: int) -> None:
    wait_until(lambda: len(find_restarts(observed, began)) >= number, DEADLINE_S, f"restart {number}")


def find_restarts(observed: ObservedCluster, began: datetime) -> list[int]:
    return [row["broker"] for row in observed.since(began) if row["kind"] == "broker_restarted"]


def create_acl(observed: ObservedCluster, principal: str) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        "guarded",
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    wait_for(observed.client.create_acls([binding]))


def delete_acls(observed: ObservedCluster) -> None:
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    wait_for(observed.client.delete_acls([every]))


def wait_for(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(DEADLINE_S)


def fill(observed: ObservedCluster, topic: str, partition: int, size: int) -> None:
    producer = Producer({"bootstrap.servers": observed.local.bootstrap(CLUSTER), "log_level": 0})
    for _ in range(size // 100_000):
        producer.produce(topic, bytes(100_000), partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def let_pass_until(timestamp_s: float) -> None:
    let_pass(time.monotonic() + timestamp_s - now().timestamp())
