"""Looks at a cluster of three brokers, for tests of their comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_core.metadata import (
    ClusterObservation,
    ConnectionEvent,
    ConnectionEventKind,
    ObservedBroker,
    ObservedLogDir,
    ObservedPartition,
    ObservedQuorum,
    ObservedSetting,
    ObservedTopic,
    ReplicaMove,
    SettingOrigin,
    SettingOwner,
    SettingScope,
    TopicPartition,
)
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

START = datetime(2026, 3, 2, tzinfo=UTC)
UUID = "cluster-uuid"


def at(seconds: float) -> datetime:
    """Return a time so many seconds after the first look."""
    return START + timedelta(seconds=seconds)


def broker(number: int, *, fenced: bool = False, rack: str | None = "z1", port: int = 9092) -> ObservedBroker:
    return ObservedBroker(f"host-{number}", port, rack, fenced)


def partition(
    leader: int | None, replicas: Sequence[int], in_sync: Sequence[int] | None = None, epoch: int = 1
) -> ObservedPartition:
    return ObservedPartition(leader, epoch, tuple(replicas), tuple(sorted(in_sync or replicas)))


def topic(*partitions: ObservedPartition, topic_id: str = "id") -> ObservedTopic:
    return ObservedTopic(topic_id, dict(enumerate(partitions)))


def setting(
    value: str | None, origin: SettingOrigin = SettingOrigin.OWN, *, sensitive: bool = False
) -> ObservedSetting:
    return ObservedSetting(value, origin, sensitive)


def inherited(value: str | None) -> ObservedSetting:
    return setting(value, SettingOrigin.INHERITED)


TOPIC, BROKER_1, ALL = (
    SettingOwner(SettingScope.TOPIC, "orders"),
    SettingOwner(SettingScope.BROKER, "1"),
    SettingOwner(SettingScope.ALL_BROKERS, ""),
)

QUIET = ClusterObservation(
    START,
    START,
    UUID,
    asked_broker=1,
    brokers={number: broker(number) for number in (1, 2, 3)},
    topics={"orders": topic(partition(1, [1, 2]), partition(2, [2, 3]), partition(3, [3, 1]))},
    moves={},
    quorum=ObservedQuorum(1, 7, frozenset({1, 2, 3}), {}),
    feature_levels={"metadata.version": 29},
    settings={
        TOPIC: {"retention.ms": inherited("604800000"), "cleanup.policy": inherited("delete")},
        BROKER_1: {
            "log.retention.ms": setting("604800000", SettingOrigin.FILE),
            "ssl.keystore.password": setting(None, SettingOrigin.OWN, sensitive=True),
        },
        ALL: {},
    },
    quotas={},
    acls=frozenset(),
    log_dirs={number: {"/data": ObservedLogDir(False, False)} for number in (1, 2, 3)},
    stored_bytes=dict.fromkeys((1, 2, 3), 10000000),
)

ORDERS = QUIET.topics["orders"]
BROKERS = QUIET.brokers
P0 = TopicPartition("orders", 0)


def look(seconds: float, **parts: Any) -> ClusterObservation:
    """Return a whole look at the quiet cluster with some parts replaced."""
    return replace(QUIET, at=at(seconds), began_at=at(seconds), **parts)


def fast_look(seconds: float, brokers: Mapping[int, ObservedBroker]) -> ClusterObservation:
    """Return a look at the brokers alone."""
    return ClusterObservation(at(seconds), at(seconds), UUID, is_whole=False, brokers=brokers)


def with_setting(
    owner: SettingOwner, **values: ObservedSetting
) -> dict[SettingOwner, Mapping[str, ObservedSetting]]:
    """Return the quiet settings with those of an owner replaced; `__` in a name stands for a dot."""
    replaced = {name.replace("__", "."): value for name, value in values.items()}
    return {**QUIET.settings, owner: {**QUIET.settings[owner], **replaced}}


def ended(seconds: float, number: int) -> ConnectionEvent:
    return ConnectionEvent(number, at(seconds), ConnectionEventKind.ENDED)


def opened(seconds: float, number: int, version: tuple[int, ...] = (4, 3)) -> ConnectionEvent:
    return ConnectionEvent(number, at(seconds), ConnectionEventKind.OPENED, version)


def move(number: int, adding: Sequence[int], removing: Sequence[int]) -> dict[TopicPartition, ReplicaMove]:
    return {TopicPartition("orders", number): ReplicaMove(frozenset(adding), frozenset(removing))}


def follow(
    *looks: ClusterObservation | tuple[ClusterObservation, Sequence[ConnectionEvent]],
) -> list[ObservedChange]:
    """Return the changes that these looks show, in order, after a look at the quiet cluster."""
    history, changes = compare(ObservedHistory(), QUIET)
    assert not changes
    all_changes: list[ObservedChange] = []
    for each in looks:
        observation, events = each if isinstance(each, tuple) else (each, ())
        history, changes = compare(history, observation, events)
        all_changes += changes
    return all_changes


def kinds(changes: list[ObservedChange]) -> list[ChangeKind]:
    return [change.kind for change in changes]


def only(changes: list[ObservedChange]) -> ObservedChange:
    assert len(changes) == 1, kinds(changes)
    return changes[0]
