"""What an observer reads of a cluster at one time, part by part, as values.

A part that could not be read is None, or lacks what could not be read of it; ``failures`` has the reason. So
that nothing is taken for gone that is only not seen, a topic that this client may not describe any more is in
``hidden_topics``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_core.metadata.cluster_metadata import TopicPartition


class ObservedBroker(NamedTuple):
    """A registered broker and its client listener."""

    host: str
    port: int
    rack: str | None
    is_fenced: bool


class ObservedPartition(NamedTuple):
    """A partition: its leader (None without one), leader epoch, replicas in order, and in-sync replicas."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class ObservedTopic(NamedTuple):
    """A topic's ID, and its partitions by number."""

    topic_id: str
    partitions: Mapping[int, ObservedPartition]


class ReplicaMove(NamedTuple):
    """A partition that is being reassigned: the brokers that get a replica, and those that lose one."""

    adding: frozenset[int]
    removing: frozenset[int]


class ObservedQuorum(NamedTuple):
    """The metadata quorum: its leader, that is the active controller, its epoch, and the voters.

    ``directory_ids`` are those of voters and observers, by node; a node has none before kraft.version 1.
    """

    leader: int
    leader_epoch: int
    voters: frozenset[int]
    directory_ids: Mapping[int, str]


class ObservedLogDir(NamedTuple):
    """The state of a broker's log directory."""

    is_offline: bool
    is_cordoned: bool


class SettingScope(StrEnum):
    """What a dynamic setting applies to."""

    BROKER = "broker"
    ALL_BROKERS = "brokers"
    TOPIC = "topic"


class SettingOwner(NamedTuple):
    """A resource that has settings of its own; the name of ALL_BROKERS is blank."""

    scope: SettingScope
    name: str


class SettingOrigin(StrEnum):
    """Where the effective value of a setting comes from."""

    OWN = "own"
    """Set dynamically for this broker, all brokers, or this topic."""
    FILE = "file"
    """Set in the properties file of the broker whose setting it is."""
    ALL_BROKERS = "brokers"
    """Set dynamically for all brokers, and so for this one."""
    INHERITED = "inherited"
    """Any other default."""


class ObservedSetting(NamedTuple):
    """The effective value of a setting; None if it is sensitive or unset."""

    value: str | None
    origin: SettingOrigin
    is_sensitive: bool


ObservedSettings = Mapping[str, ObservedSetting]


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """What was read of a cluster, all of it from one broker unless a broker alone can say it.

    It was read from ``began_at`` to ``at``. ``asked_broker`` is the broker that was asked. ``is_whole`` is
    False if only the brokers were read. ``lists_fenced`` is False for a version of Kafka that lists live
    brokers only. ``settings``, ``log_dirs`` and ``stored_bytes`` (the size of a broker's replicas, read now
    and then) have those that were read. ``moved_bytes`` are the sizes of replicas that are being added.
    ``quotas`` are by entity, and ``acls`` are the bindings as text.
    """

    at: datetime
    began_at: datetime
    kafka_cluster_uuid: str = ""
    asked_broker: int | None = None
    is_whole: bool = True
    brokers: Mapping[int, ObservedBroker] | None = None
    lists_fenced: bool = True
    topics: Mapping[str, ObservedTopic] | None = None
    hidden_topics: frozenset[str] = frozenset()
    moves: Mapping[TopicPartition, ReplicaMove] | None = None
    moved_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    quorum: ObservedQuorum | None = None
    feature_levels: Mapping[str, int] | None = None
    settings: Mapping[SettingOwner, ObservedSettings] = field(default_factory=dict)
    quotas: Mapping[str, Mapping[str, float]] | None = None
    acls: frozenset[str] | None = None
    log_dirs: Mapping[int, Mapping[str, ObservedLogDir]] = field(default_factory=dict)
    stored_bytes: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


class ConnectionEventKind(StrEnum):
    """What happened to a connection that is held to a broker."""

    OPENED = "opened"
    ENDED = "ended"
    """The other side closed or reset it."""


class ConnectionEvent(NamedTuple):
    """A connection to a broker was opened, or the other side ended it; ``version`` is that of Kafka."""

    broker_id: int
    at: datetime
    kind: ConnectionEventKind
    version: tuple[int, ...] | None = None
