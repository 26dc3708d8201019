"""Add what a snapshot of a mirror shows to the replication state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_maker import OffsetSync
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord, ReplicationState


@dataclass(frozen=True, slots=True)
class ObservedSync:
    """An offset sync, and when MirrorMaker wrote it, in milliseconds since the epoch."""

    sync: OffsetSync
    at_ms: int


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The log end offsets of one partition in both clusters. The destination's was read first."""

    destination: int
    source: int


@dataclass(frozen=True, slots=True)
class MirrorSnapshot:
    """A mirror at one moment. Topic names are those of the source cluster.

    ``ids`` were read after ``syncs``, and ``ends`` after both; so if the ids are the same as in the previous
    snapshot, the topic was not recreated in between.
    """

    source: str
    destination: str
    syncs: tuple[ObservedSync, ...]
    ids: Mapping[str, TopicIds]
    ends: Mapping[tuple[str, int], LogEnds]
    at_ms: int


def ingest_snapshot(
    state: ReplicationState, snapshot: MirrorSnapshot, watermark_every_ms: int = 0
) -> tuple[CheckpointRecord, ...]:
    """Add a snapshot to the state and return the new records: all offset syncs, and due watermarks.

    At most one watermark per partition is taken in ``watermark_every_ms``, except when a mirror catches up.
    """
    state.mark_inspected(snapshot.source, snapshot.destination, snapshot.at_ms)
    records = (*_ingest_syncs(state, snapshot), *_ingest_ends(state, snapshot, watermark_every_ms))
    return tuple(record for record in records if record)


def _ingest_syncs(state: ReplicationState, snapshot: MirrorSnapshot) -> Iterator[CheckpointRecord | None]:
    by_partition: dict[PartitionRoute, list[ObservedSync]] = {}
    for observed in snapshot.syncs:
        route = PartitionRoute(
            snapshot.source, snapshot.destination, observed.sync.topic, observed.sync.partition
        )
        by_partition.setdefault(route, []).append(observed)
    for route, syncs in by_partition.items():
        ids, ends = snapshot.ids.get(route.topic), snapshot.ends.get((route.topic, route.partition))
        if ids is not None and ends is not None:
            for observed in _select_current_syncs(state, route, ids, syncs):
                # An offset beyond the end belongs to an earlier topic or log.
                if observed.sync.upstream < ends.source and observed.sync.downstream < ends.destination:
                    yield state.apply_checkpoint(route, ids, _to_checkpoint(observed, snapshot.at_ms))


def _to_checkpoint(observed: ObservedSync, now_ms: int) -> Checkpoint:
    sync = observed.sync
    return Checkpoint(sync.upstream, sync.downstream, min(observed.at_ms, now_ms), CheckpointOrigin.SYNC)


def _select_current_syncs(
    state: ReplicationState, route: PartitionRoute, ids: TopicIds, syncs: Sequence[ObservedSync]
) -> Sequence[ObservedSync]:
    """Return the offset syncs that refer to the current topic. An offset sync contains no topic id.

    If the id changed since the last snapshot, or just before it, a sync may refer to the old topic. For a
    topic seen for the first time, a source offset that goes back is taken as the sign of an older topic.
    """
    previous_ids = state.topic_ids(route)
    if previous_ids is None:
        restarts = [
            index
            for index in range(1, len(syncs))
            if syncs[index].sync.upstream <= syncs[index - 1].sync.upstream
        ]
        return syncs[restarts[-1] :] if restarts else syncs
    if previous_ids != ids:
        return ()
    return [observed for observed in syncs if not state.may_predate_recreation(route, observed.at_ms)]


def _ingest_ends(
    state: ReplicationState, snapshot: MirrorSnapshot, every_ms: int
) -> Iterator[CheckpointRecord | None]:
    """Take a fence, or a watermark if the source's last record is known to be replicated."""
    for (topic, partition), ends in snapshot.ends.items():
        ids = snapshot.ids.get(topic)
        if ids is None:
            continue
        route = PartitionRoute(snapshot.source, snapshot.destination, topic, partition)
        origin = CheckpointOrigin.FENCE
        if _is_caught_up(state, route, ids, ends):
            origin = CheckpointOrigin.IDLE_WATERMARK
            state.mark_progress(route, snapshot.at_ms)
        if _is_due(state, route, ids, origin, snapshot.at_ms - every_ms):
            watermark = Checkpoint(ends.source, ends.destination, snapshot.at_ms, origin)
            yield state.apply_checkpoint(route, ids, watermark)


def _is_due(
    state: ReplicationState, route: PartitionRoute, ids: TopicIds, origin: CheckpointOrigin, until_ms: int
) -> bool:
    """Return whether a watermark is due: at intervals, and at once when a mirror has caught up."""
    history = state.history(route)
    latest = history.latest_watermark if history and history.ids == ids else None
    if latest is None or latest.observed_ms <= until_ms:
        return True
    return origin is CheckpointOrigin.IDLE_WATERMARK and latest.origin is CheckpointOrigin.FENCE


def _is_caught_up(state: ReplicationState, route: PartitionRoute, ids: TopicIds, ends: LogEnds) -> bool:
    if ends.source == 0:
        return True
    history = state.history(route) if state.topic_ids(route) == ids else None
    sync = history.last_sync if history else None
    return sync is not None and sync.src_offset == ends.source - 1 and sync.dst_offset < ends.destination
