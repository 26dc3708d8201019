"""Reassignments of partitions: from the first partition that is reassigned until none is any more.

Kafka keeps no record of a reassignment, only which replicas each partition is getting and losing. So those
that overlap in time are one: its partitions are done when they have the replicas that they were to get, and
cancelled when they have those of before.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleetgauge_core.metadata import ObservedPartition, ReplicaMove, TopicPartition
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

_PROGRESS_AFTER = timedelta(minutes=1)
#: Partitions that a record lists; it counts all of them.
_MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class Target:
    """The replicas of a partition before a reassignment (None: not known), and those that it is to get."""

    before: tuple[int, ...] | None
    after: tuple[int, ...]
    brokers: frozenset[int]
    """Those that get or lose a replica."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment: the target of each partition, and what has become of those that have ended."""

    starts: datetime
    targets: Mapping[TopicPartition, Target]
    pending: frozenset[TopicPartition]
    moved_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The size of the new replicas of each partition, when it was looked at last."""
    awaited: frozenset[TopicPartition] = frozenset()
    """Pending partitions that were not reassigned any more at the last look, but did not show it yet."""
    outcomes: Counter[str] = field(default_factory=Counter)
    reported_at: datetime | None = None
    was_running_at_first_look: bool = False


def follow_reassignment(
    reassignment: Reassignment | None,
    before: KnownParts,
    after: KnownParts,
    moved_bytes: Mapping[TopicPartition, int],
) -> tuple[Reassignment | None, tuple[ObservedChange, ...]]:
    """Return the reassignment by now, and its begin, its progress of a minute, or its end.

    ``moved_bytes`` are the sizes of the replicas that are being added. Nothing is compared unless both the
    partitions and what is reassigned were read.
    """
    if (
        not after.topics
        or not after.moves
        or after.topics.at != after.moves.at
        or (before.topics and before.topics.at == after.topics.at)
    ):
        return reassignment, ()
    now = after.topics.at
    current = reassignment
    targets = dict(_find_targets(reassignment, before, after))
    quick = dict(_find_completed_unseen(reassignment, targets, before, after))
    if (targets or quick) and current is None:
        starts = before.topics.began_at if before.topics else now
        current = Reassignment(starts, {}, frozenset(), was_running_at_first_look=before.topics is None)
    if current is None:
        return None, ()
    current = _advance(current, targets, quick, moved_bytes, after)
    if not current.pending:
        return None, (_describe_end(current, now, after), *_describe_factors(current, now, after))
    phase = ChangePhase.BEGUN if reassignment is None else ChangePhase.PROGRESS
    is_due = (
        not current.was_running_at_first_look
        if reassignment is None
        else current.reported_at is None or now - current.reported_at >= _PROGRESS_AFTER
    )
    if not is_due:
        return current, ()
    change = _describe(current, None, phase, after)
    return replace(current, reported_at=now), (change,)


def _find_targets(
    reassignment: Reassignment | None, before: KnownParts, after: KnownParts
) -> Iterator[tuple[TopicPartition, Target]]:
    """Yield the partitions that are reassigned, as far as both readings agree on it.

    The partitions are read a moment before what is reassigned, and from another node. A move that began in
    between counts at the next look, and so does the end of one.
    """
    awaited = reassignment.awaited if reassignment else frozenset()
    moves = after.moves.value if after.moves else {}
    for partition, move in moves.items():
        later = after.partition(partition)
        if later is None or move.adding <= set(later.replicas):
            yield partition, _find_target(partition, move, before, after)
    pending = (
        {partition: reassignment.targets[partition] for partition in reassignment.pending}
        if reassignment
        else {}
    )
    for partition in pending.keys() - moves.keys():
        metadata, target = after.partition(partition), pending[partition]
        if metadata and _is_unfinished(target, metadata) and partition not in awaited:
            yield partition, target


def _is_unfinished(target: Target, partition: ObservedPartition) -> bool:
    """Return whether a partition has both what it gets and what it loses."""
    replicas = set(partition.replicas)
    ends = [set(listed) for listed in (target.before, target.after) if listed is not None]
    return replicas not in ends and target.brokers <= replicas


def _find_target(
    partition: TopicPartition, move: ReplicaMove, before: KnownParts, after: KnownParts
) -> Target:
    earlier, later = before.partition(partition), after.partition(partition)
    # While it is reassigned, a partition has its target in order, and then what it loses.
    replicas = later.replicas if later else ()
    target = tuple(broker_id for broker_id in replicas if broker_id not in move.removing)
    return Target(earlier.replicas if earlier else None, target, move.adding | move.removing)


def _find_completed_unseen(
    reassignment: Reassignment | None,
    targets: Mapping[TopicPartition, Target],
    before: KnownParts,
    after: KnownParts,
) -> Iterator[tuple[TopicPartition, Target]]:
    """Yield the partitions that got other replicas, or another order of them, between two looks."""
    if not before.topics or not after.topics or not after.moves or not before.moves:
        return
    if before.topics.at != before.moves.at:
        # What was reassigned then is not known, and may be going on.
        return
    pending = reassignment.pending if reassignment else frozenset()
    for name, topic in after.topics.value.items():
        earlier = before.topics.value.get(name)
        if earlier is None or earlier.topic_id != topic.topic_id or earlier.partitions == topic.partitions:
            continue
        for number, later in topic.partitions.items():
            partition, previous = TopicPartition(name, number), earlier.partitions.get(number)
            if (
                previous
                and previous.replicas != later.replicas
                and partition not in pending
                and partition not in targets
                and partition not in after.moves.value
            ):
                brokers = frozenset(previous.replicas) ^ frozenset(later.replicas)
                yield partition, Target(previous.replicas, later.replicas, brokers)


def _advance(
    reassignment: Reassignment,
    targets: Mapping[TopicPartition, Target],
    quick: Mapping[TopicPartition, Target],
    moved_bytes: Mapping[TopicPartition, int],
    after: KnownParts,
) -> Reassignment:
    outcomes = Counter(reassignment.outcomes)
    outcomes["done"] += len(quick)
    for partition in reassignment.pending - targets.keys():
        outcomes[_find_outcome(reassignment.targets[partition], after.partition(partition))] += 1
    # The replicas of before are those of the first look at the partition.
    kept = {
        partition: replace(target, before=reassignment.targets[partition].before)
        if partition in reassignment.targets
        else target
        for partition, target in {**targets, **quick}.items()
    }
    return replace(
        reassignment,
        targets={**reassignment.targets, **kept},
        pending=frozenset(targets),
        awaited=frozenset(targets) - after.moves.value.keys() if after.moves else frozenset(),
        moved_bytes={**reassignment.moved_bytes, **moved_bytes},
        outcomes=+outcomes,
    )


def _find_outcome(target: Target, partition: ObservedPartition | None) -> str:
    if partition is None:
        return "deleted"
    if set(partition.replicas) == set(target.after):
        return "done"
    if target.before is not None and set(partition.replicas) == set(target.before):
        return "cancelled"
    return "changed"


def _describe_end(reassignment: Reassignment, now: datetime, after: KnownParts) -> ObservedChange:
    outcomes = reassignment.outcomes
    is_cancelled = outcomes["cancelled"] > 0 and not outcomes["done"]
    phase = ChangePhase.CANCELLED if is_cancelled else ChangePhase.ENDED
    return _describe(reassignment, now, phase, after)


def _describe(
    reassignment: Reassignment,
    ends: datetime | None,
    phase: ChangePhase,
    after: KnownParts,
) -> ObservedChange:
    targets = reassignment.targets
    listed = sorted(targets)[:_MAX_LISTED]
    is_over = ends is not None
    replicas_after = {
        partition: metadata.replicas
        for partition in listed
        if (metadata := after.partition(partition)) is not None
    }
    return ObservedChange(
        ChangeKind.REASSIGNMENT,
        reassignment.starts,
        ends,
        before={_name(partition): _list(targets[partition].before) for partition in listed},
        after={
            _name(partition): _list(replicas_after.get(partition) if is_over else targets[partition].after)
            for partition in listed
        },
        evidence={
            "partitions": len(targets),
            "remaining": len(reassignment.pending),
            "outcomes": dict(reassignment.outcomes),
            "brokers": sorted(frozenset().union(*(target.brokers for target in targets.values()))),
            "moved_bytes": sum(reassignment.moved_bytes.values()) if reassignment.moved_bytes else None,
            "in_progress_at_first_look": reassignment.was_running_at_first_look,
        },
        phase=phase,
    )


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _list(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def _describe_factors(
    reassignment: Reassignment, now: datetime, after: KnownParts
) -> Iterator[ObservedChange]:
    """Yield the topics whose replication factor is another one after the reassignment."""
    factors: dict[str, tuple[set[int], set[int]]] = {}
    for partition, target in reassignment.targets.items():
        metadata = after.partition(partition)
        if metadata and target.before is not None:
            before, current = factors.setdefault(partition.topic, (set(), set()))
            before.add(len(target.before))
            current.add(len(metadata.replicas))
    for topic, (before, current) in sorted(factors.items()):
        if before != current:
            yield ObservedChange(
                ChangeKind.REPLICATION_FACTOR,
                reassignment.starts,
                now,
                topic=topic,
                before={"replication_factor": sorted(before)},
                after={"replication_factor": sorted(current)},
            )
