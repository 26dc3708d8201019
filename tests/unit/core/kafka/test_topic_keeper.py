"""A topic keeper on a simulated cluster that may refuse requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    KafkaRequestRejectedError,
    TopicKeeper,
    TopicMetadata,
    TopicSpec,
    build_log_topic_spec,
    topic_keeper,
)
from fleetgauge_core.metadata import PartitionMetadata

SPEC = build_log_topic_spec("records", 1, 3_600_000, brokers=1)


@dataclass
class SimulatedAdmin:
    """A cluster of one broker; ``forbidden`` are settings that it refuses."""

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    changes: list[str] = field(default_factory=list)

    def start(self) -> None:
        pass

    def list_broker_ids(self) -> tuple[int, ...]:
        return (1,)

    def describe_topic(self, name: str) -> TopicMetadata | None:
        partition = PartitionMetadata(1, (1,), frozenset({1}))
        return TopicMetadata(f"id of {name}", {0: partition}) if name in self.topics else None

    def create_topic(self, spec: TopicSpec) -> bool:
        if self.forbidden & spec.settings.keys():
            raise KafkaRequestRejectedError("POLICY_VIOLATION: not here")
        self.topics[spec.name] = {"cleanup.policy": "compact", "segment.ms": "1"} | dict(spec.settings)
        return True

    def read_topic_settings(self, name: str) -> Mapping[str, str]:
        return dict(self.topics[name])

    def set_topic_setting(self, name: str, key: str, value: str) -> None:
        if key in self.forbidden:
            raise KafkaRequestRejectedError("POLICY_VIOLATION: not here")
        self.changes.append(key)
        self.topics[name][key] = value


class Keeping:
    """A keeper with a clock that the test sets."""

    def __init__(self, admin: SimulatedAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topic_keeper, "ClusterAdmin", lambda *_: admin)
        self.now_s = 0.0
        self.keeper = TopicKeeper(ClusterAccess("kafka:9092"), lambda _: (SPEC,), 1, lambda: self.now_s)


def test_a_setting_is_corrected_at_most_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = SimulatedAdmin({"records": dict(SPEC.settings)})
    keeping = Keeping(admin, monkeypatch)
    for keeping.now_s in range(0, 120, 5):
        # Another process has another fleet file.
        admin.topics["records"]["retention.ms"] = "1"
        keeping.keeper.ensure()
    assert admin.changes == ["retention.ms", "retention.ms"]


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
    absent = build_log_topic_spec("absent", 1, 1000, brokers=1)
    keeper = TopicKeeper(ClusterAccess("kafka:9092"), lambda _: (absent, SPEC))

    def refuse(_: TopicSpec) -> bool:
        raise KafkaRequestRejectedError("TOPIC_AUTHORIZATION_FAILED: not you")

    monkeypatch.setattr(admin, "create_topic", refuse)
    with pytest.raises(KafkaRequestRejectedError, match="not you"):
        keeper.ensure()
    assert admin.topics["records"]["cleanup.policy"] == "delete"
