"""Compare how far two clusters have replicated their common sources, partition by partition. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import PartitionRoute
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair


@dataclass(frozen=True, slots=True)
class ReplicaProgress:
    """How far a cluster has replicated a source partition: all records before ``replicated_until``.

    ``in_window`` counts the replicated records among those written to the source since the window began; None
    if the source was not observed before. ``stalled_s`` is the time since the mirror's last progress.
    """

    replicated_until: int
    in_window: int | None
    stalled_s: float | None


@dataclass(frozen=True, slots=True)
class PartitionComparison:
    """The replication progress of one source partition in two clusters; None where it is unknown."""

    source: str
    topic: str
    partition: int
    active: ReplicaProgress | None
    passive: ReplicaProgress | None

    @property
    def difference(self) -> int | None:
        """By how many source records the two clusters differ, including those before the window."""
        if self.active is None or self.passive is None:
            return None
        return abs(self.active.replicated_until - self.passive.replicated_until)

    @property
    def stalled_s(self) -> float | None:
        """Seconds since the last progress of the mirror that has made none for longer."""
        stalls = [progress.stalled_s if progress else None for progress in (self.active, self.passive)]
        known = [stalled_s for stalled_s in stalls if stalled_s is not None]
        return max(known) if len(known) == len(stalls) else None


@dataclass(frozen=True, slots=True)
class _ReplicaEnd:
    """How far a cluster has replicated a partition, before the start of the window is known."""

    replicated_until: int
    last_progress_ms: int | None
    history: OffsetHistory | None


def compare_replicas(
    pair: ClusterPair, recovery: Recovery, state: ReplicationState, now_ms: int, window_s: float
) -> list[PartitionComparison]:
    """Compare all partitions that both clusters replicate, or that one replicates from the other.

    The tracers' topic is left out.
    """
    comparisons = []
    for source in sorted(recovery.common_sources(pair.active, pair.passive)):
        for topic, partition in sorted(_find_common_partitions(source, pair, recovery, state)):
            ends = [
                _find_replica_end(
                    PartitionRoute(source, cluster, topic, partition), state, now_ms, recovery.limits.stale_s
                )
                for cluster in (pair.active, pair.passive)
            ]
            comparisons.append(_compare(source, topic, partition, ends, now_ms, window_s))
    if recovery.mirror_between(pair.active, pair.passive):
        for history in list_mirrored_histories(pair.active, pair.passive, recovery, state):
            route = history.route
            ends = [_source_end(history, state), _destination_end(history, state)]
            comparisons.append(_compare(route.source, route.topic, route.partition, ends, now_ms, window_s))
    return comparisons


def list_mirrored_histories(
    source: str, destination: str, recovery: Recovery, state: ReplicationState
) -> list[OffsetHistory]:
    """Return the histories of all partitions that a mirror replicates, except the tracers' topic."""
    tracer_topic = recovery.tracers.topic if recovery.tracers else None
    return [
        history
        for history in state.histories_between(source, destination)
        if history.route.topic != tracer_topic
    ]


def source_end_at(history: OffsetHistory, at_ms: int) -> int | None:
    """Return the source's end offset at the last observation up to that time; None if there is none."""
    latest = history.latest_watermark
    if latest is None:
        return None
    watermark, low, high = None, 0, latest.src_offset
    # End offsets ascend with time, so the last observation that is not too late is found by bisection.
    while low <= high:
        middle = (low + high) // 2
        candidate = history.watermark_at_or_before(middle)
        if candidate and candidate.observed_ms > at_ms:
            high = candidate.src_offset - 1
        else:
            watermark, low = candidate or watermark, middle + 1
    return watermark.src_offset if watermark else None


def _find_common_partitions(
    source: str, pair: ClusterPair, recovery: Recovery, state: ReplicationState
) -> set[tuple[str, int]]:
    mirrors = [recovery.mirror_between(source, cluster) for cluster in (pair.active, pair.passive)]
    return {
        (history.route.topic, history.route.partition)
        for cluster in (pair.active, pair.passive)
        for history in list_mirrored_histories(source, cluster, recovery, state)
        if all(mirror and mirror.replicates(history.route.topic) for mirror in mirrors)
    }


def _compare(
    source: str,
    topic: str,
    partition: int,
    ends: Sequence[_ReplicaEnd | None],
    now_ms: int,
    window_s: float,
) -> PartitionComparison:
    histories = [end.history for end in ends if end and end.history]
    if len({history.ids.source for history in histories if history.ids}) > 1:
        # The topic was recreated, and one mirror still refers to the old one.
        return PartitionComparison(source, topic, partition, None, None)
    window_starts = [source_end_at(history, now_ms - round(1000 * window_s)) for history in histories]
    window_start = max((offset for offset in window_starts if offset is not None), default=None)
    active, passive = (_measure_progress(end, window_start, now_ms) if end else None for end in ends)
    return PartitionComparison(source, topic, partition, active, passive)


def _measure_progress(end: _ReplicaEnd, window_start: int | None, now_ms: int) -> ReplicaProgress:
    in_window = None if window_start is None else max(0, end.replicated_until - window_start)
    stalled_s = None if end.last_progress_ms is None else (now_ms - end.last_progress_ms) / 1000
    return ReplicaProgress(end.replicated_until, in_window, stalled_s)


def _find_replica_end(
    route: PartitionRoute, state: ReplicationState, now_ms: int, stale_s: float
) -> _ReplicaEnd | None:
    history = state.history(route)
    if history:
        return _destination_end(history, state)
    inspected_ms = state.last_inspected_ms(route.source, route.destination)
    if inspected_ms is None or now_ms - inspected_ms > 1000 * stale_s:
        return None
    # The mirror was inspected, and the destination does not have the topic yet.
    return _ReplicaEnd(0, inspected_ms, None)


def _destination_end(history: OffsetHistory, state: ReplicationState) -> _ReplicaEnd | None:
    if history.latest_watermark is None:
        return None
    return _ReplicaEnd(history.replicated_until, state.last_progress_ms(history.route), history)


def _source_end(history: OffsetHistory, state: ReplicationState) -> _ReplicaEnd | None:
    """Return the end of the source itself, which has all records up to its end offset."""
    latest, route = history.latest_watermark, history.route
    inspected_ms = state.last_inspected_ms(route.source, route.destination)
    return _ReplicaEnd(latest.src_offset, inspected_ms, history) if latest else None
