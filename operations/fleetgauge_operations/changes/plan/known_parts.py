"""What is known of a cluster: each part as it was read last, which may be longer ago than the last look."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from fleetgauge_core.metadata import (
    ClusterObservation,
    ConnectionEvent,
    ConnectionEventKind,
    ObservedBroker,
    ObservedLogDir,
    ObservedPartition,
    ObservedQuorum,
    ObservedSettings,
    ObservedTopic,
    ReplicaMove,
    SettingOwner,
    SettingScope,
    TopicPartition,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A part of an observation, and from when to when that was read."""

    began_at: datetime
    at: datetime
    value: T


@dataclass(frozen=True, slots=True)
class KnownParts:
    """The last reading of each part; None, or no entry, of what was never read.

    ``looked_at`` is when the last look at all parts began, and ``asked_broker`` who was asked; None once that
    broker's connection has ended since.
    """

    looked_at: datetime | None = None
    asked_broker: int | None = None
    brokers: Reading[Mapping[int, ObservedBroker]] | None = None
    topics: Reading[Mapping[str, ObservedTopic]] | None = None
    moves: Reading[Mapping[TopicPartition, ReplicaMove]] | None = None
    quorum: Reading[ObservedQuorum] | None = None
    feature_levels: Reading[Mapping[str, int]] | None = None
    quotas: Reading[Mapping[str, Mapping[str, float]]] | None = None
    acls: Reading[frozenset[str]] | None = None
    settings: Mapping[SettingOwner, Reading[ObservedSettings]] = field(default_factory=dict)
    log_dirs: Mapping[int, Reading[Mapping[str, ObservedLogDir]]] = field(default_factory=dict)
    stored_bytes: Mapping[int, Reading[int]] = field(default_factory=dict)

    def has_looked_since(self, at: datetime) -> bool:
        """Return whether all parts were to be read since that time."""
        return self.looked_at is not None and self.looked_at >= at

    def partition(self, partition: TopicPartition) -> ObservedPartition | None:
        """Return what is known of a partition."""
        topic = self.topics.value.get(partition.topic) if self.topics else None
        return topic.partitions.get(partition.partition) if topic else None


_SINGLE_PARTS = ("brokers", "topics", "moves", "quorum", "feature_levels", "quotas", "acls")
_PARTS_BY_SUBJECT = ("settings", "log_dirs", "stored_bytes")


def forget_topic_settings(
    parts: KnownParts, observation: ClusterObservation, events: Collection[ConnectionEvent]
) -> KnownParts:
    """Return the parts without the settings of topics if another broker tells them now.

    After its restart a broker of Kafka 4.3 has settings of a deleted topic for a new one of the same name
    (seen in version 4.3.1), and others do not; so a broker that has restarted counts as another one.
    """
    ended = {event.broker_id for event in events if event.kind is ConnectionEventKind.ENDED}
    is_other = observation.is_whole and observation.asked_broker != parts.asked_broker
    if not is_other and parts.asked_broker not in ended:
        return parts
    kept = {
        owner: reading for owner, reading in parts.settings.items() if owner.scope is not SettingScope.TOPIC
    }
    return replace(parts, asked_broker=None, settings=kept)


def learn(parts: KnownParts, observation: ClusterObservation) -> KnownParts:
    """Return the parts with those that were read."""
    values: dict[str, Any] = {}
    if observation.is_whole:
        values = {"looked_at": observation.began_at, "asked_broker": observation.asked_broker}
    values |= {
        name: _read(observation, getattr(observation, name))
        for name in _SINGLE_PARTS
        if getattr(observation, name) is not None
    }
    if observation.quorum and observation.quorum.leader < 0:
        # One that elects: who leads after it counts.
        del values["quorum"]
    for name in _PARTS_BY_SUBJECT:
        values[name] = {
            **getattr(parts, name),
            **{subject: _read(observation, value) for subject, value in getattr(observation, name).items()},
        }
    return _forget_absent(replace(parts, **_complete(parts, observation, values)))


def _complete(parts: KnownParts, observation: ClusterObservation, values: dict[str, Any]) -> dict[str, Any]:
    """Add what an observation could not show, but is known to exist: it is no change that it is not seen."""
    if observation.brokers is not None and not observation.lists_fenced and parts.brokers:
        live = observation.brokers
        fenced = {
            broker_id: broker._replace(is_fenced=True)
            for broker_id, broker in parts.brokers.value.items()
            if broker_id not in live
        }
        values["brokers"] = _read(observation, {**fenced, **live})
    if observation.topics is not None and parts.topics:
        hidden = {
            name: parts.topics.value[name] for name in observation.hidden_topics if name in parts.topics.value
        }
        values["topics"] = _read(observation, {**observation.topics, **hidden})
    return values


def _read(observation: ClusterObservation, value: T) -> Reading[T]:
    return Reading(observation.began_at, observation.at, value)


def _forget_absent(parts: KnownParts) -> KnownParts:
    """Forget the settings of topics and brokers, and the directories of brokers, that are gone."""
    topics = parts.topics.value if parts.topics else {}
    brokers = {str(broker_id) for broker_id in parts.brokers.value} if parts.brokers else set()
    existing = {"topic": topics, "broker": brokers, "brokers": {""}}
    return replace(
        parts,
        settings={
            owner: reading
            for owner, reading in parts.settings.items()
            if owner.name in existing[owner.scope.value]
        },
        log_dirs={
            broker_id: reading for broker_id, reading in parts.log_dirs.items() if str(broker_id) in brokers
        },
        stored_bytes={
            broker_id: reading
            for broker_id, reading in parts.stored_bytes.items()
            if str(broker_id) in brokers
        },
    )


def count_under_replicated(parts: KnownParts) -> int:
    """Return how many partitions lack an in-sync replica, replicas that are being added not counted.

    Kafka's own metric counts so too; a partition that is being reassigned has more replicas than it will
    have.
    """
    if not parts.topics:
        return 0
    moves = parts.moves.value if parts.moves else {}
    return sum(
        len(partition.in_sync) < len(partition.replicas) - len(_adding(moves, name, number))
        for name, topic in parts.topics.value.items()
        for number, partition in topic.partitions.items()
    )


def _adding(moves: Mapping[TopicPartition, ReplicaMove], topic: str, number: int) -> frozenset[int]:
    move = moves.get(TopicPartition(topic, number)) if moves else None
    return move.adding if move else frozenset()
