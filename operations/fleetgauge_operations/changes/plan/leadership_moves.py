"""Moves of partition leadership, counted by broker over a minute.

A move to a partition's preferred leader while the leader before it is still in sync is a balance: Kafka's own
(auto.leader.rebalance.enable), or an election that somebody requested. Any other move is a failover.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetgauge_core.metadata import ObservedPartition, ObservedTopic
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts, Reading, count_under_replicated
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

_WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LeadershipCounts:
    """How many partitions each broker has lost and gained, and how: -1 stands for no leader."""

    lost: Counter[int] = field(default_factory=Counter)
    gained: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "LeadershipCounts") -> "LeadershipCounts":
        """Return the sums."""
        return LeadershipCounts(
            self.lost + other.lost, self.gained + other.gained, self.reasons + other.reasons
        )


@dataclass(frozen=True, slots=True)
class LeadershipWindow:
    """The moves since ``starts``, for a minute; ``leaders`` is how many partitions each broker led before."""

    starts: datetime
    leaders: Mapping[int, int]
    counts: LeadershipCounts


def follow_leaderships(
    window: LeadershipWindow | None, before: KnownParts, after: KnownParts
) -> tuple[LeadershipWindow | None, tuple[ObservedChange, ...]]:
    """Return the window by now, and a change if leaderships moved: it counts the whole window so far."""
    if not before.topics or not after.topics or before.topics.at == after.topics.at:
        return window, ()
    if window and after.topics.at - window.starts > _WINDOW:
        window = None
    counts = _count(before.topics.value, after.topics.value)
    if not counts.reasons:
        return window, ()
    if window is None:
        window = LeadershipWindow(before.topics.began_at, _count_leaders(before.topics), counts)
    else:
        window = LeadershipWindow(window.starts, window.leaders, window.counts + counts)
    return window, (_describe(window, after.topics, count_under_replicated(after)),)


def _describe(
    window: LeadershipWindow, topics: Reading[Mapping[str, ObservedTopic]], under_replicated: int
) -> ObservedChange:
    counts = window.counts
    return ObservedChange(
        ChangeKind.LEADERSHIP_MOVED,
        window.starts,
        topics.at,
        before={"leaders": _by_broker(window.leaders)},
        after={"leaders": _by_broker(_count_leaders(topics))},
        evidence={
            "moves": counts.reasons.total(),
            **counts.reasons,
            "lost": _by_broker(counts.lost),
            "gained": _by_broker(counts.gained),
            "under_replicated_partitions": under_replicated,
        },
    )


def _by_broker(counts: Mapping[int, int]) -> dict[str, int]:
    return {"none" if broker_id < 0 else str(broker_id): count for broker_id, count in sorted(counts.items())}


def _count_leaders(topics: Reading[Mapping[str, ObservedTopic]]) -> Counter[int]:
    return Counter(
        -1 if partition.leader is None else partition.leader
        for topic in topics.value.values()
        for partition in topic.partitions.values()
    )


def _count(before: Mapping[str, ObservedTopic], after: Mapping[str, ObservedTopic]) -> LeadershipCounts:
    counts = LeadershipCounts()
    for earlier, later in _pair_partitions(before, after):
        if earlier.leader == later.leader:
            continue
        counts.lost[-1 if earlier.leader is None else earlier.leader] += 1
        counts.gained[-1 if later.leader is None else later.leader] += 1
        counts.reasons["balanced" if is_balance(earlier, later) else "failed_over"] += 1
    return counts


def is_balance(before: ObservedPartition, after: ObservedPartition) -> bool:
    """Return whether a partition's leader is the preferred one now, while the one before is in sync."""
    return after.leader == after.replicas[0] and before.leader in after.in_sync


def _pair_partitions(
    before: Mapping[str, ObservedTopic], after: Mapping[str, ObservedTopic]
) -> Iterator[tuple[ObservedPartition, ObservedPartition]]:
    """Yield the partitions that are in both, unless the topic is another one by now."""
    for name, topic in after.items():
        earlier = before.get(name)
        if earlier is None or earlier.topic_id != topic.topic_id or earlier.partitions == topic.partitions:
            continue
        for number, partition in topic.partitions.items():
            if number in earlier.partitions:
                yield earlier.partitions[number], partition
