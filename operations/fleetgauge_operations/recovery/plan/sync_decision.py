"""Decide whether a group's translated offset is committed in the passive cluster, and if not, why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import LogRange, PartitionRoute
from fleetgauge_operations.recovery.offsets.mapping import map_with_best_rule
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.offsets.translation import translate


class SyncVerdict(StrEnum):
    """Whether the offset of one partition is committed in the passive cluster.

    With any verdict but WRITE and UNCHANGED nothing is written, and an operator has to check.
    """

    WRITE = "write"
    UNCHANGED = "unchanged"
    """The translated offset is committed already."""
    UNKNOWN_TOPIC = "unknown_topic"
    """No mirror replicates that partition to the passive cluster, or not yet."""
    GROUP_HAS_MEMBERS = "connected"
    """The group has members in the passive cluster, which commit their own offsets."""
    TOPIC_RECREATED = "made_anew"
    """The topic was deleted and created again, and no checkpoint of the new topic covers the position."""
    STALE = "stale"
    """A mirror has made no progress for too long, although it may have records to replicate."""
    UNBOUNDED = "unbounded"
    """A source has no checkpoint at or before the position: its next record may lie anywhere."""
    POSSIBLE_LOSS = "possible_loss"
    """Unconsumed records may lie before the passive log start offset, where they can no longer be read."""
    BACKWARDS = "backwards"
    """A higher offset is committed in the passive cluster, and the group was not reset in the active one."""
    FAILED = "failed"
    """The offset was to be written, but reading it back gives another one."""

    @property
    def is_ok(self) -> bool:
        """Whether the group can resume at the translated offset."""
        return self in (SyncVerdict.WRITE, SyncVerdict.UNCHANGED)


@dataclass(frozen=True, slots=True)
class CommittedPosition:
    """A group's committed offset in one partition of the active cluster, and that log's end offset."""

    topic: str
    partition: int
    committed: int
    end: int


@dataclass(frozen=True, slots=True)
class PassivePartition:
    """The replica of a partition in the passive cluster, and the group's state there.

    ``log`` is None if the partition does not exist. ``synced_position`` is the active cluster's offset from
    which ``committed`` was translated; None if Fleetgauge has not written it.
    """

    topic: str
    partition: int
    log: LogRange | None
    has_members: bool
    committed: int | None = None
    synced_position: int | None = None


@dataclass(frozen=True, slots=True)
class SyncDecision:
    """The verdict on one partition, and the translated offset that it is about.

    ``early_at_most`` is the maximum number of offsets between ``resume`` and the first unconsumed record.
    """

    position: CommittedPosition
    passive: PassivePartition
    verdict: SyncVerdict
    resume: int | None = None
    rule: str | None = None
    early_at_most: int | None = None
    stalled_s: float | None = None
    """Seconds since the last progress of the mirror that has made none for longest."""
    passive_routes: tuple[PartitionRoute, ...] = ()
    """The routes by which the passive partition is replicated."""


@dataclass(frozen=True, slots=True)
class ClusterPair:
    """The cluster in which groups consume, and the one in which they resume after a failover."""

    active: str
    passive: str


@dataclass(frozen=True, slots=True)
class _TranslatedOffset:
    resume: int | None
    rule: str | None
    early_at_most: int | None = None
    possible_loss: bool = False


def passive_topic(recovery: Recovery, pair: ClusterPair, topic: str) -> str | None:
    """Return the name of an active cluster's topic in the passive one; None if no mirror replicates it."""
    direct = recovery.mirror_between(pair.active, pair.passive)
    if direct:
        return direct.destination_topic(topic) if direct.replicates(topic) else None
    names = {
        mirror.destination_topic(origin.topic)
        for origin in _find_origins(recovery, pair.active, topic)
        if (mirror := recovery.mirror_between(origin.source, pair.passive))
        and mirror.replicates(origin.topic)
    }
    return names.pop() if len(names) == 1 else None


def decide_sync(
    position: CommittedPosition,
    passive: PassivePartition,
    pair: ClusterPair,
    recovery: Recovery,
    state: ReplicationState,
    now_ms: int,
) -> SyncDecision:
    """Translate one committed offset and decide whether to write it. The first objection is the verdict."""
    since_ms = now_ms - round(1000 * recovery.limits.stale_s)
    routes = _find_routes(position, passive, pair, recovery, state, since_ms)
    if passive.log is None or not routes:
        return SyncDecision(position, passive, SyncVerdict.UNKNOWN_TOPIC)
    translated = _translate(position.committed, passive.log, pair, recovery, state, routes)
    stalled_s = _measure_stall(routes, state, now_ms)
    return SyncDecision(
        position,
        passive,
        _judge(position, passive, translated, routes, state, stalled_s, recovery.limits.stale_s),
        translated.resume,
        translated.rule,
        translated.early_at_most,
        stalled_s,
        tuple(route for route in routes if route.destination == pair.passive),
    )


def _judge(
    position: CommittedPosition,
    passive: PassivePartition,
    translated: _TranslatedOffset,
    routes: Sequence[PartitionRoute],
    state: ReplicationState,
    stalled_s: float | None,
    stale_s: float,
) -> SyncVerdict:
    if passive.has_members:
        return SyncVerdict.GROUP_HAS_MEMBERS
    if translated.resume is None:
        is_recreated = any(map(state.was_recreated, routes))
        return SyncVerdict.TOPIC_RECREATED if is_recreated else SyncVerdict.UNBOUNDED
    if stalled_s is None or stalled_s > stale_s:
        return SyncVerdict.STALE
    if translated.possible_loss:
        return SyncVerdict.POSSIBLE_LOSS
    if passive.committed == translated.resume:
        return SyncVerdict.UNCHANGED
    was_reset = passive.synced_position is not None and position.committed < passive.synced_position
    if passive.committed is not None and translated.resume < passive.committed and not was_reset:
        return SyncVerdict.BACKWARDS
    return SyncVerdict.WRITE


def _translate(
    committed: int,
    log: LogRange,
    pair: ClusterPair,
    recovery: Recovery,
    state: ReplicationState,
    routes: Sequence[PartitionRoute],
) -> _TranslatedOffset:
    is_direct = recovery.mirror_between(pair.active, pair.passive) is not None
    histories = {route: history for route in routes if (history := state.history(route))}
    if len(histories) < len(routes):
        return _TranslatedOffset(None, None)
    if is_direct:
        translation = translate(committed, histories[routes[0]], log)
        return _TranslatedOffset(
            translation.resume, "translation", translation.early_at_most, translation.possible_loss
        )
    active, passive = (
        {route.source: history for route, history in histories.items() if route.destination == cluster}
        for cluster in (pair.active, pair.passive)
    )
    result = map_with_best_rule(committed, active, passive, log)
    resume = None if result.is_unbounded else result.resume
    return _TranslatedOffset(resume, result.rule.value, result.early_at_most, result.possible_loss)


class _OriginTopic(NamedTuple):
    source: str
    topic: str


def _find_origins(recovery: Recovery, cluster: str, topic: str) -> Iterator[_OriginTopic]:
    """Yield the source topics that a cluster's topic replicates, whether or not the sources have them."""
    for mirror in recovery.mirrors_into(cluster):
        source_topic = mirror.source_topic(topic)
        if source_topic is not None:
            yield _OriginTopic(mirror.source, source_topic)


def _find_routes(
    position: CommittedPosition,
    passive: PassivePartition,
    pair: ClusterPair,
    recovery: Recovery,
    state: ReplicationState,
    since_ms: int,
) -> tuple[PartitionRoute, ...]:
    """Return all routes whose histories a translation needs.

    A source that was inspected since then and has no such topic is left out.
    """
    if recovery.mirror_between(pair.active, pair.passive):
        return (PartitionRoute(pair.active, pair.passive, position.topic, position.partition),)
    origins = {
        *_find_origins(recovery, pair.active, position.topic),
        *_find_origins(recovery, pair.passive, passive.topic),
    }
    routes_by_origin = (
        [
            PartitionRoute(source, cluster, topic, position.partition)
            for cluster in (pair.active, pair.passive)
        ]
        for source, topic in sorted(origins)
    )
    return tuple(
        route
        for routes in routes_by_origin
        if not all(_is_absent(state, route, since_ms) for route in routes)
        for route in routes
    )


def _is_absent(state: ReplicationState, route: PartitionRoute, since_ms: int) -> bool:
    inspected_ms = state.last_inspected_ms(route.source, route.destination)
    return state.history(route) is None and inspected_ms is not None and inspected_ms >= since_ms


def _measure_stall(routes: Sequence[PartitionRoute], state: ReplicationState, now_ms: int) -> float | None:
    progress_ms = [state.last_progress_ms(route) for route in routes]
    known_ms = [at_ms for at_ms in progress_ms if at_ms is not None]
    return (now_ms - min(known_ms)) / 1000 if known_ms and len(known_ms) == len(progress_ms) else None
