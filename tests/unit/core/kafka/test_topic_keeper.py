"""A topic keeper on a simulated cluster that may refuse requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    BrokerRegistry,
    KafkaRequestRejectedError,
    TopicKeeper,
    TopicMetadata,
    TopicSpec,
    build_log_topic_spec,
    topic_keeper,
)
from fleetgauge_core.metadata import BrokerRegistration, PartitionMetadata

SPEC = build_log_topic_spec("records", 1, 3_600_000, brokers=1)


@dataclass
class SimulatedAdmin:
    """A cluster of which broker 1 is live; ``forbidden`` are settings that it refuses."""

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    changes: list[str] = field(default_factory=list)
    created: list[TopicSpec] = field(default_factory=list)
    brokers: tuple[int, ...] = (1,)
    counts: int = 0
    generation: int = 1
    """Part of the IDs of topics."""

    def start(self) -> None:
        pass

    def describe_topic(self, name: str) -> TopicMetadata | None:
        partition = PartitionMetadata(1, (1,), frozenset({1}))
        return TopicMetadata(f"{name} {self.generation}", {0: partition}) if name in self.topics else None

    def read_registry(self, _: ClusterAccess) -> BrokerRegistry:
        self.counts += 1
        brokers = {
            broker_id: BrokerRegistration(broker_id, "kafka", 9092, None, fenced=broker_id > 1)
            for broker_id in self.brokers
        }
        return BrokerRegistry("uuid", brokers)

    def create_topic(self, spec: TopicSpec) -> bool:
        if self.forbidden & spec.settings.keys():
            raise KafkaRequestRejectedError("POLICY_VIOLATION: not here")
        self.created.append(spec)
        self.topics[spec.name] = {"cleanup.policy": "compact", "segment.ms": "1"} | dict(spec.settings)
        return True

    def read_topic_settings(self, name: str) -> Mapping[str, str]:
        return dict(self.topics[name])

    def set_topic_setting(self, name: str, key: str, value: str) -> None:
        if key in self.forbidden:
            raise KafkaRequestRejectedError("POLICY_VIOLATION: not here")
        self.changes.append(key)
        self.topics[name][key] = value


def build_specs(brokers: int) -> tuple[TopicSpec, ...]:
    return (build_log_topic_spec("records", 1, 3_600_000, brokers),)


class Keeping:
    """A keeper with a clock that the test sets."""

    def __init__(self, admin: SimulatedAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topic_keeper, "ClusterAdmin", lambda *_: admin)
        monkeypatch.setattr(topic_keeper, "read_broker_registry", admin.read_registry)
        self.now_s = 0.0
        self.keeper = TopicKeeper(ClusterAccess("kafka:9092"), build_specs, 1, lambda: self.now_s)


def test_a_setting_is_corrected_at_most_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = SimulatedAdmin({"records": dict(SPEC.settings)})
    keeping = Keeping(admin, monkeypatch)
    for keeping.now_s in range(0, 120, 5):
        # Another process has another fleet file.
        admin.topics["records"]["retention.ms"] = "1"
        keeping.keeper.ensure()
    assert admin.changes == ["retention.ms", "retention.ms"]


def test_a_topic_is_created_with_the_replicas_of_brokers_that_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = SimulatedAdmin(brokers=(1, 2, 3))
    Keeping(admin, monkeypatch).keeper.ensure()
    (created,) = admin.created
    assert (created.replication_factor, created.settings["min.insync.replicas"]) == (3, "2")


def test_brokers_are_counted_rarely_and_too_few_replicas_are_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    admin = SimulatedAdmin({"records": dict(SPEC.settings)}, brokers=(1, 2))
    keeping = Keeping(admin, monkeypatch)
    for keeping.now_s in range(0, 1200, 5):
        keeping.keeper.ensure()
    assert admin.counts == 2
    assert [message for message in caplog.messages if "replication factor" in message] == [
        "topic records has replication factor 1 instead of 2: add replicas with kafka-reassign-partitions"
    ]


def test_a_topic_that_has_a_replica_on_each_of_few_brokers_is_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Keeping(SimulatedAdmin({"records": dict(SPEC.settings)}), monkeypatch).keeper.ensure()
    assert caplog.messages == []


def test_a_topic_is_created_without_settings_of_which_the_cluster_refuses_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    admin = SimulatedAdmin(forbidden=frozenset({"segment.ms"}))
    keeping = Keeping(admin, monkeypatch)
    for keeping.now_s in (0, 100, 200):
        keeping.keeper.ensure()
    assert admin.topics["records"]["cleanup.policy"] == "delete"
    refused = [message for message in caplog.messages if "cannot be corrected" in message]
    assert refused == [
        "topic records has segment.ms=1 instead of 600000 and cannot be corrected: POLICY_VIOLATION: not here"
    ]


def test_a_topic_that_may_not_be_created_does_not_keep_others_from_being_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = SimulatedAdmin({"records": {"cleanup.policy": "compact"}})
    monkeypatch.setattr(topic_keeper, "ClusterAdmin", lambda *_: admin)
    monkeypatch.setattr(topic_keeper, "read_broker_registry", admin.read_registry)
    absent = build_log_topic_spec("absent", 1, 1000, brokers=1)
    keeper = TopicKeeper(ClusterAccess("kafka:9092"), lambda _: (absent, SPEC))

    def refuse(_: TopicSpec) -> bool:
        raise KafkaRequestRejectedError("TOPIC_AUTHORIZATION_FAILED: not you")

    monkeypatch.setattr(admin, "create_topic", refuse)
    with pytest.raises(KafkaRequestRejectedError, match="not you"):
        keeper.ensure()
    assert admin.topics["records"]["cleanup.policy"] == "delete"


def test_a_topic_that_is_another_one_than_before_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = SimulatedAdmin()
    keeping = Keeping(admin, monkeypatch)
    for _ in range(2):
        keeping.keeper.ensure()
    assert keeping.keeper.recreations == 0
    admin.generation = 2
    for _ in range(3):
        keeping.keeper.ensure()
    assert keeping.keeper.recreations == 1
