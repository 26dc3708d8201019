"""Plan of the probe topic: one partition for each broker, with that broker as its first replica.

Motivation: a partition led by a particular broker is the only thing in Kafka that can be slow or fail
because of that broker alone. That broker is the partition's *home*.

Approach: compare the topic's actual state with the desired state and return the actions in the order in
which they are to be applied. Before partitions are added, a broker without one is given a partition whose
home was removed, or a partition whose first replica is also the home of another one. Brokers that are
replicas of a partition stay replicas. A demoted broker keeps its partition but is not made to lead it.
Nothing in this module talks to a cluster.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from fleetgauge_core.metadata import PartitionMetadata, build_log_settings, find_differences

TOPIC = "fleetgauge.probe"

_MAX_REPLICAS = 3
_RETENTION_MS = 3_600_000
#: Where the cluster assigns replicas, partitions are added up to this many for each broker, until every
#: broker leads one.
_MAX_PARTITIONS_PER_BROKER = 8


class ReplicaPlacement(Enum):
    """How much control the cluster gives over the placement of new replicas."""

    EXPLICIT = auto()
    """The client assigns replicas to brokers."""
    REPLICATION_FACTOR = auto()
    """The client gives a replication factor; the cluster assigns replicas to brokers."""
    CLUSTER_DEFAULT = auto()
    """The cluster decides the replication factor and the topic's settings as well."""


@dataclass(frozen=True, slots=True)
class TopicCapabilities:
    """What the cluster is believed to permit: everything, until it rejects a request."""

    placement: ReplicaPlacement = ReplicaPlacement.EXPLICIT
    can_reassign: bool = True
    """Whether existing partitions may be reassigned to other replicas."""


ALL_CAPABILITIES = TopicCapabilities()


@dataclass(frozen=True, slots=True)
class HomeBroker:
    """A registered broker, which should lead a probe partition unless it is demoted."""

    broker_id: int
    rack: str | None
    demoted: bool = False


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """Creates the topic; partition p gets ``replicas[p]``, or the cluster assigns them if it is empty.

    With ``replication_factor`` None the cluster decides the replication factor and all settings.
    """

    partitions: int
    replication_factor: int | None
    replicas: tuple[tuple[int, ...], ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The topic's settings by their Kafka names; empty if the cluster decides them."""
        if self.replication_factor is None:
            return {}
        return build_log_settings(_RETENTION_MS, self.replication_factor)

    def __str__(self) -> str:
        """Describe the action for log lines."""
        return f"create {TOPIC} with {self.partitions} partitions{_format_assignment(self.replicas)}"


@dataclass(frozen=True, slots=True)
class PartitionAddition:
    """Adds partitions up to ``total``; the cluster assigns their replicas if ``replicas`` is empty."""

    total: int
    replicas: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        """Describe the action for log lines."""
        return f"add partitions up to {self.total}{_format_assignment(self.replicas)}"


@dataclass(frozen=True, slots=True)
class ReplicaReassignment:
    """Reassigns partitions: pairs of a partition and its new replicas."""

    replicas: tuple[tuple[int, tuple[int, ...]], ...]

    def __str__(self) -> str:
        """Describe the action for log lines."""
        moves = (f"partition {partition} to {_format_ids(brokers)}" for partition, brokers in self.replicas)
        return f"reassign {', '.join(moves)}"


@dataclass(frozen=True, slots=True)
class SettingUpdate:
    """Sets one of the topic's settings, which has another value than this module's."""

    key: str
    value: str

    def __str__(self) -> str:
        """Describe the action for log lines."""
        return f"set {self.key} to {self.value}"


@dataclass(frozen=True, slots=True)
class PreferredLeaderElection:
    """Elects the preferred leaders (the homes) of these partitions."""

    partitions: tuple[int, ...]

    def __str__(self) -> str:
        """Describe the action for log lines."""
        return f"elect the preferred leaders of partitions {_format_ids(self.partitions)}"


TopicAction = (
    TopicCreation | PartitionAddition | ReplicaReassignment | SettingUpdate | PreferredLeaderElection
)


@dataclass(frozen=True, slots=True)
class ProbeTopicState:
    """The topic's actual state; ``settings`` is empty where they could not be read."""

    partitions: Mapping[int, PartitionMetadata]
    settings: Mapping[str, str] = field(default_factory=dict)


def plan_probe_topic(
    homes: Sequence[HomeBroker],
    responding: frozenset[int],
    topic: ProbeTopicState | None,
    capabilities: TopicCapabilities = ALL_CAPABILITIES,
) -> tuple[TopicAction, ...]:
    """Return the actions that are due, in order.

    ``homes`` are the registered brokers, ``responding`` the ids of those that respond, and ``topic`` is None
    where it does not exist. A registered broker gets its partition even while it is down; until it is back,
    an in-sync replica leads the partition.
    """
    brokers = sorted(homes, key=lambda home: home.broker_id)
    if not brokers:
        return ()
    if topic is None:
        return (_plan_creation(brokers, capabilities.placement),)
    moves = dict(_plan_moves(brokers, responding, topic.partitions)) if capabilities.can_reassign else {}
    after_moves = _apply_moves(topic.partitions, moves)
    return (
        *_plan_additions(brokers, after_moves, capabilities.placement),
        *((ReplicaReassignment(tuple(sorted(moves.items()))),) if moves else ()),
        *_plan_settings(topic, moves),
        *_plan_elections(after_moves, responding - _demoted_ids(brokers)),
    )


def narrow_capabilities(capabilities: TopicCapabilities, rejected: TopicAction) -> TopicCapabilities:
    """Return the capabilities that remain after a rejected action; unchanged if nothing less can be asked."""
    match rejected, capabilities.placement:
        case ReplicaReassignment(), _:
            return replace(capabilities, can_reassign=False)
        case ((TopicCreation() | PartitionAddition()), ReplicaPlacement.EXPLICIT):
            return replace(capabilities, placement=ReplicaPlacement.REPLICATION_FACTOR)
        case TopicCreation(), ReplicaPlacement.REPLICATION_FACTOR:
            return replace(capabilities, placement=ReplicaPlacement.CLUSTER_DEFAULT)
        case _:
            return capabilities


def map_home_partitions(
    partitions: Mapping[int, PartitionMetadata], demoted: Set[int] = frozenset()
) -> dict[int, int]:
    """Return each broker's home partition: the lowest one whose first replica it is.

    A demoted broker may be the first replica nowhere. Its home is then the lowest partition that has it as a
    replica and whose first replica is the first replica of another partition too.
    """
    first_replicas = {
        partition: partitions[partition].replicas[0]
        for partition in sorted(partitions)
        if partitions[partition].replicas
    }
    times_first = Counter(first_replicas.values())
    homes: dict[int, int] = {}
    for broker in sorted(demoted - times_first.keys()):
        for partition, first in first_replicas.items():
            if times_first[first] > 1 and broker in partitions[partition].replicas:
                homes[broker] = partition
                times_first[first] -= 1
                del first_replicas[partition]
                break
    for partition, broker in first_replicas.items():
        homes.setdefault(broker, partition)
    return homes


def _plan_creation(brokers: Sequence[HomeBroker], placement: ReplicaPlacement) -> TopicCreation:
    replication_factor = min(_MAX_REPLICAS, len(brokers))
    match placement:
        case ReplicaPlacement.EXPLICIT:
            assignment = _assign_replicas(brokers, brokers, replication_factor)
            return TopicCreation(len(brokers), replication_factor, assignment)
        case ReplicaPlacement.REPLICATION_FACTOR:
            return TopicCreation(len(brokers), replication_factor)
        case ReplicaPlacement.CLUSTER_DEFAULT:
            return TopicCreation(len(brokers), None)


def _plan_additions(
    brokers: Sequence[HomeBroker], partitions: Mapping[int, PartitionMetadata], placement: ReplicaPlacement
) -> Iterator[PartitionAddition]:
    """Plan partitions for brokers without one, with the replication factor of the existing partitions."""
    homes = map_home_partitions(partitions, _demoted_ids(brokers))
    missing = [home for home in brokers if home.broker_id not in homes]
    total = len(partitions) + len(missing)
    if missing and placement is ReplicaPlacement.EXPLICIT:
        existing = max((len(partition.replicas) for partition in partitions.values()), default=_MAX_REPLICAS)
        replication_factor = min(existing, len(brokers))
        yield PartitionAddition(total, _assign_replicas(missing, brokers, replication_factor))
    elif missing and total <= _MAX_PARTITIONS_PER_BROKER * len(brokers):
        yield PartitionAddition(total)


def _assign_replicas(
    homes: Sequence[HomeBroker], brokers: Sequence[HomeBroker], replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    rack_of = {home.broker_id: home.rack for home in brokers}
    return tuple(
        _choose_replicas(home.broker_id, (), list(rack_of), rack_of, replication_factor) for home in homes
    )


def _plan_moves(
    brokers: Sequence[HomeBroker], responding: frozenset[int], partitions: Mapping[int, PartitionMetadata]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield partitions that need other replicas, with those replicas.

    These are partitions without a home, with a replica that is no longer registered, or with too few
    replicas. Only responding brokers are added, because a reassignment to another one would not finish.
    """
    rack_of = {home.broker_id: home.rack for home in brokers}
    responding_ids = [home.broker_id for home in brokers if home.broker_id in responding]
    demoted = _demoted_ids(brokers)
    homes = map_home_partitions(partitions, demoted)
    partition_of = {broker: partition for broker, partition in homes.items() if broker in rack_of}
    taken = frozenset(partition_of.values())
    kept_as_they_are = {partition for broker, partition in partition_of.items() if broker in demoted}
    spare = [partition for partition in sorted(partitions) if partition not in taken]
    homeless = [broker for broker in responding_ids if broker not in partition_of]
    assigned = _assign_spare_partitions(spare, homeless, partitions)
    home_of = {partition: broker for broker, partition in partition_of.items()} | assigned
    for partition in sorted(partitions):
        kept = [broker for broker in partitions[partition].replicas if broker in rack_of]
        first = next(iter([*kept, *responding_ids]), None)
        if first is None:
            continue
        home = first if partition in kept_as_they_are else home_of.get(partition, first)
        replication_factor = max(min(_MAX_REPLICAS, len(brokers)), len(kept))
        replicas = _choose_replicas(home, kept, responding_ids, rack_of, replication_factor)
        if replicas != partitions[partition].replicas:
            yield partition, replicas


def _demoted_ids(brokers: Sequence[HomeBroker]) -> frozenset[int]:
    return frozenset(home.broker_id for home in brokers if home.demoted)


def _assign_spare_partitions(
    spare: Sequence[int], homeless: Sequence[int], partitions: Mapping[int, PartitionMetadata]
) -> dict[int, int]:
    """Map spare partitions to brokers without one, first where the broker is a replica already."""
    remaining, assigned = list(homeless), {}
    for only_replicas in (True, False):
        for partition in spare:
            candidates = [
                broker
                for broker in remaining
                if not only_replicas or broker in partitions[partition].replicas
            ]
            if candidates and partition not in assigned:
                assigned[partition] = candidates[0]
                remaining.remove(candidates[0])
    return assigned


def _apply_moves(
    partitions: Mapping[int, PartitionMetadata], moves: Mapping[int, tuple[int, ...]]
) -> Mapping[int, PartitionMetadata]:
    moved = {
        partition: PartitionMetadata(None, replicas, frozenset()) for partition, replicas in moves.items()
    }
    return {**partitions, **moved}


def _plan_settings(topic: ProbeTopicState, moves: Mapping[int, tuple[int, ...]]) -> Iterator[SettingUpdate]:
    """Plan settings that differ from this module's.

    The lowest replica count of any partition, before and after moves, decides min.insync.replicas. A topic
    that somebody else created may for example be compacted, and then rejects every probe.
    """
    replica_counts = [len(partition.replicas) for partition in topic.partitions.values()]
    replica_counts += [len(replicas) for replicas in moves.values()]
    specified = build_log_settings(_RETENTION_MS, _MAX_REPLICAS)
    for difference in find_differences(specified, topic.settings, replica_counts) if replica_counts else ():
        yield SettingUpdate(difference.key, difference.specified)


def _plan_elections(
    partitions: Mapping[int, PartitionMetadata], eligible: frozenset[int]
) -> Iterator[PreferredLeaderElection]:
    misled = tuple(
        partition for partition in sorted(partitions) if _can_elect_home(partitions[partition], eligible)
    )
    if misled:
        yield PreferredLeaderElection(misled)


def _can_elect_home(partition: PartitionMetadata, eligible: frozenset[int]) -> bool:
    home = partition.replicas[0] if partition.replicas else None
    return home is not None and home != partition.leader and home in partition.in_sync and home in eligible


def _choose_replicas(
    home: int,
    kept: Sequence[int],
    candidates: Sequence[int],
    rack_of: Mapping[int, str | None],
    replication_factor: int,
) -> tuple[int, ...]:
    """Return the home, the kept replicas, then the candidates that follow it by id, unused racks first."""
    chosen = [home, *(broker for broker in kept if broker != home)]
    if len(chosen) >= replication_factor:
        return tuple(chosen)
    following = [broker for broker in candidates if broker > home]
    ring = following + [broker for broker in candidates if broker < home]
    for needs_unused_rack in (True, False):
        for broker in ring:
            if len(chosen) >= replication_factor:
                return tuple(chosen)
            used_racks = {rack_of[replica] for replica in chosen}
            if broker not in chosen and (not needs_unused_rack or rack_of[broker] not in used_racks):
                chosen.append(broker)
    return tuple(chosen)


def _format_assignment(replicas: Sequence[Sequence[int]]) -> str:
    return f" on {'; '.join(map(_format_ids, replicas))}" if replicas else ""


def _format_ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
