"""Observe a mirror: its offset syncs, its topic ids, and the end offsets in both clusters."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from fleetgauge_core.fleet import Fleet, Mirror
from fleetgauge_core.kafka import ReportTopicChange, TopicIdentity, TopicOffsets, TopicReader
from fleetgauge_core.metadata import (
    LogBounds,
    PresentTopic,
    TopicPartition,
    TopicSnapshot,
    find_topic_changes,
)
from fleetgauge_operations.recovery.offsets.checkpoint import TopicIds
from fleetgauge_operations.recovery.offsets.mirror_maker import MalformedRecord, decode_offset_sync
from fleetgauge_operations.recovery.offsets.sync_ingest import LogEnds, MirrorSnapshot, ObservedSync

_log = logging.getLogger("fleetgauge.recover")

CLIENT_ID = "fleetgauge-recover"
#: MirrorMaker writes all offset syncs to this partition.
_PARTITION = 0
_POLL_TIMEOUT_S = 2.0


class SyncProgress(Protocol):
    """How far each topic of offset syncs has been read and stored."""

    def read_until(self, syncs: str) -> int | None:
        """Return the offset of the first sync that is not stored yet; None if none of the topic is."""


@dataclass(frozen=True, slots=True)
class MirrorObservation:
    """A snapshot of a mirror, and the offset up to which its topic of syncs has been read, to be stored."""

    snapshot: MirrorSnapshot
    read_until: Mapping[str, int]


class MirrorObserver:
    """Observes one mirror repeatedly; every offset sync is returned once.

    All methods raise KafkaUnavailableError.
    """

    def __init__(
        self,
        fleet: Fleet,
        mirror: Mirror,
        offsets: Mapping[str, TopicOffsets],
        progress: SyncProgress,
        now_ms: Callable[[], int],
        report_topic_change: ReportTopicChange,
    ) -> None:
        """``offsets`` has a started client for every cluster, by its id."""
        self.mirror = mirror
        self._source, self._destination = offsets[mirror.source], offsets[mirror.destination]
        self._syncs_offsets = self._destination if mirror.syncs_at == "destination" else self._source
        self._syncs_access = fleet.cluster(mirror.syncs_cluster).access
        self._progress = progress
        self._now_ms = now_ms
        self._report = partial(report_topic_change, mirror.syncs_cluster, mirror.syncs_topic)
        self._snapshot: TopicSnapshot | None = None
        """The topic of syncs at the last look, without the position; None before the first."""
        self._reading: tuple[str, TopicReader] | None = None
        self._next_offset = 0
        self._pending: list[ObservedSync] = []
        """Syncs that were read but not returned, because their partition was not visible in both clusters."""
        self._read_until: dict[str, int] = {}
        """How far each topic of syncs was read before its reader was closed."""

    def stop(self) -> None:
        """Close the reader of offset syncs."""
        if self._reading:
            name, reader = self._reading
            self._read_until[name] = self._next_offset
            self._reading = None
            reader.stop()

    def observe(self, topic_names: Collection[str]) -> MirrorObservation:
        """Take a snapshot; ``topic_names`` are the source cluster's topics, listed just before."""
        self._read_syncs()
        topics = [topic for topic in sorted(topic_names) if self.mirror.replicates(topic)]
        source_topics, replicas = self._source.describe_topics(topics), self._describe_replicas(topics)
        partitions = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in _common_partitions(topic, source_topics, replicas)
        ]
        # The destination must be read before the source: only then do the two end offsets form a watermark.
        destination_ends = self._destination.read_end_offsets(
            [self._replica_of(partition) for partition in partitions]
        )
        source_ends = self._source.read_end_offsets(partitions)
        ends: dict[tuple[str, int], LogEnds] = {
            partition: LogEnds(destination_ends[self._replica_of(partition)], source_ends[partition])
            for partition in partitions
            if partition in source_ends and self._replica_of(partition) in destination_ends
        }
        snapshot = MirrorSnapshot(
            source=self.mirror.source,
            destination=self.mirror.destination,
            syncs=tuple(sync for sync in self._pending if _partition_of(sync) in ends),
            ids={
                topic: TopicIds(identity.topic_id, replicas[topic].topic_id)
                for topic, identity in source_topics.items()
                if topic in replicas
            },
            ends=ends,
            at_ms=self._now_ms(),
        )
        # The next snapshot may show the missing partitions; the last sync of each is enough then.
        pending = {_partition_of(sync): sync for sync in self._pending if _partition_of(sync) not in ends}
        self._pending = [
            sync for partition, sync in pending.items() if self.mirror.replicates(partition.topic)
        ]
        read_until = {self._reading[0]: self._next_offset} if self._reading else {}
        return MirrorObservation(snapshot, read_until)

    def _replica_of(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self.mirror.destination_topic(partition.topic), partition.partition)

    def _describe_replicas(self, topics: list[str]) -> dict[str, TopicIdentity]:
        """Return the destination's topics by their names in the source."""
        source_names = {self.mirror.destination_topic(topic): topic for topic in topics}
        replicas = self._destination.describe_topics(source_names)
        return {source_names[name]: identity for name, identity in replicas.items()}

    def _read_syncs(self) -> None:
        reader = self._open_reader()
        if reader is None:
            return
        end = self._follow_log(reader)
        while self._next_offset < end:
            record = reader.poll(_POLL_TIMEOUT_S)
            if record is None:
                _log.warning(
                    "%s: read up to offset %d of %d: check the READ permission on the topic",
                    self.mirror.syncs_topic,
                    self._next_offset,
                    end,
                )
                break
            self._next_offset = record.offset + 1
            sync = decode_offset_sync(record.key, record.value)
            if isinstance(sync, MalformedRecord):
                topic = self.mirror.syncs_topic
                _log.warning("%s: record %d is not an offset sync: %s", topic, record.offset, sync.detail)
            else:
                self._pending.append(ObservedSync(sync, record.at_ms))

    def _follow_log(self, reader: TopicReader) -> int:
        """Go on where the log is, if it does not have the next offset any more; return the log's end."""
        bounds = LogBounds(*reader.read_offset_bounds([_PARTITION])[_PARTITION])
        topic_id = self._snapshot.topic_id if self._snapshot else None
        if topic_id:
            partitions = frozenset({_PARTITION})
            earlier = TopicSnapshot(topic_id, partitions, {_PARTITION: self._next_offset})
            present = PresentTopic(topic_id, partitions, {_PARTITION: bounds})
            for change in find_topic_changes(earlier, present):
                self._next_offset = change.resume[_PARTITION]
                reader.assign_from({_PARTITION: self._next_offset})
                self._report(change)
            self._snapshot = replace(earlier, positions={}, ends={_PARTITION: bounds.end})
        return bounds.end

    def _follow_identity(self, topic_id: str | None) -> None:
        """Report that the topic of syncs was deleted or recreated since the last look."""
        earlier = self._snapshot
        if earlier and earlier.topic_id != topic_id:
            if self._reading:
                earlier = replace(earlier, positions={_PARTITION: self._next_offset})
            present = PresentTopic(topic_id, earlier.partitions) if topic_id else None
            for change in find_topic_changes(earlier, present):
                self._report(change)
        if earlier is None or earlier.topic_id != topic_id:
            self._snapshot = TopicSnapshot(topic_id, frozenset({_PARTITION})) if earlier or topic_id else None

    def _open_reader(self) -> TopicReader | None:
        """Return a reader of offset syncs, or None before the topic exists.

        A topic that was recreated is read from its beginning.
        """
        topic = self.mirror.syncs_topic
        identity = self._syncs_offsets.describe_topics([topic]).get(topic)
        self._follow_identity(identity.topic_id if identity else None)
        name = f"{self.mirror.syncs_cluster}/{topic}/{identity.topic_id}" if identity else None
        if self._reading and self._reading[0] == name:
            return self._reading[1]
        self.stop()
        if name is None:
            return None
        reader = TopicReader(self._syncs_access, topic, CLIENT_ID)
        reader.start()
        try:
            start, end = reader.read_offset_bounds([_PARTITION])[_PARTITION]
            read_until = max(self._progress.read_until(name) or 0, self._read_until.get(name, 0))
        except Exception:
            reader.stop()
            raise
        self._next_offset = min(max(read_until, start), end)
        reader.assign_from({_PARTITION: self._next_offset})
        self._reading = name, reader
        return reader


def _partition_of(observed: ObservedSync) -> TopicPartition:
    return TopicPartition(observed.sync.topic, observed.sync.partition)


def _common_partitions(
    topic: str, source_topics: Mapping[str, TopicIdentity], replicas: Mapping[str, TopicIdentity]
) -> list[int]:
    """Return the partitions that exist in both clusters."""
    if topic not in source_topics or topic not in replicas:
        return []
    return sorted({*source_topics[topic].partitions} & {*replicas[topic].partitions})
