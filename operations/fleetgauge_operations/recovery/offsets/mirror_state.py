"""The replication state of a fleet's mirrors: the offset history and the last progress of each partition."""

from collections.abc import Iterable
from typing import NamedTuple

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.replication_runs import HistoryUpdate

#: MirrorMaker delays an offset sync until it commits, by default once a minute.
_SYNC_DELAY_MS = 60_000


class CheckpointRecord(NamedTuple):
    """A checkpoint of one mirrored partition, as it is stored.

    ``epoch`` is the partition's OffsetHistory epoch after this checkpoint was appended.
    """

    route: PartitionRoute
    ids: TopicIds
    epoch: int
    checkpoint: Checkpoint


class ReplicationState:
    """What is known about every mirrored partition, built from checkpoints in the order of observation."""

    def __init__(self, records: Iterable[CheckpointRecord] = ()) -> None:
        self._histories: dict[PartitionRoute, OffsetHistory] = {}
        self._last_progress_ms: dict[PartitionRoute, int] = {}
        self._recreated_ms: dict[PartitionRoute, int] = {}
        self._last_inspected_ms: dict[tuple[str, str], int] = {}
        self._topics: dict[tuple[str, str], frozenset[str]] = {}
        for record in records:
            self.apply_checkpoint(record.route, record.ids, record.checkpoint)

    def __len__(self) -> int:
        return len(self._histories)

    def history(self, route: PartitionRoute) -> OffsetHistory | None:
        """Return the offset history of a mirrored partition, or None before its first checkpoint."""
        return self._histories.get(route)

    def histories_between(self, source: str, destination: str) -> tuple[OffsetHistory, ...]:
        """Return the histories of a mirror's partitions, without topics that it no longer replicates."""
        topics = self._topics.get((source, destination))
        return tuple(
            history
            for route, history in self._histories.items()
            if (route.source, route.destination) == (source, destination)
            and (topics is None or route.topic in topics)
        )

    def set_topics(self, source: str, destination: str, topics: Iterable[str]) -> None:
        """Set the topics that a mirror replicates now."""
        self._topics[source, destination] = frozenset(topics)

    def topic_ids(self, route: PartitionRoute) -> TopicIds | None:
        """Return the topic ids that the partition's latest checkpoint refers to."""
        history = self._histories.get(route)
        return history.ids if history else None

    def last_progress_ms(self, route: PartitionRoute) -> int | None:
        """Return when the partition was last seen to be replicated, or to have nothing left to replicate.

        In milliseconds since the epoch.
        """
        return self._last_progress_ms.get(route)

    def was_recreated(self, route: PartitionRoute) -> bool:
        """Return whether the topic was deleted and created again, at either end."""
        return route in self._recreated_ms

    def may_predate_recreation(self, route: PartitionRoute, at_ms: int) -> bool:
        """Return whether an offset sync written at that time may refer to the topic before its recreation."""
        recreated_ms = self._recreated_ms.get(route)
        return recreated_ms is not None and at_ms < recreated_ms + _SYNC_DELAY_MS

    def last_inspected_ms(self, source: str, destination: str) -> int | None:
        """Return when a mirror was last inspected: a partition unknown by then did not exist."""
        return self._last_inspected_ms.get((source, destination))

    def mark_inspected(self, source: str, destination: str, at_ms: int) -> None:
        """Record that a mirror is inspected at that time."""
        self._last_inspected_ms[source, destination] = at_ms

    def mark_progress(self, route: PartitionRoute, at_ms: int) -> None:
        """Record that a partition was replicated, or had nothing left to replicate, at that time."""
        self._last_progress_ms[route] = max(self._last_progress_ms.get(route, 0), at_ms)

    def expire(self, routes: Iterable[PartitionRoute], log_start: int) -> None:
        """Discard checkpoints before the destination's log start offset, where nothing can be read."""
        for route in routes:
            history = self._histories.get(route)
            if history:
                history.expire(log_start)

    def apply_checkpoint(
        self, route: PartitionRoute, ids: TopicIds, checkpoint: Checkpoint
    ) -> CheckpointRecord | None:
        """Add a checkpoint; return the record to store, or None if it adds nothing."""
        history = self._histories.setdefault(route, OffsetHistory(route, ids))
        if history.update_topic_ids(ids) is HistoryUpdate.INVALIDATED:
            self._recreated_ms[route] = checkpoint.observed_ms
        update = history.append(checkpoint)
        if checkpoint.origin is not CheckpointOrigin.FENCE:
            self.mark_progress(route, checkpoint.observed_ms)
        if update is HistoryUpdate.UNCHANGED:
            return None
        return CheckpointRecord(route, ids, history.epoch, checkpoint)
