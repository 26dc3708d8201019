"""Inspect both ends of a mirror before a failback."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Fleet, Mirror
from fleetgauge_core.kafka import ClusterAdmin, ConsumerRecord, TopicOffsets, TopicReader
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.offsets.checkpoint import LogRange, PartitionRoute
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.translation import translate
from fleetgauge_operations.recovery.plan.failback import (
    NO_STRANDED_RECORDS,
    FailbackReport,
    OffsetSpan,
    PartitionFailback,
    StrandedRecords,
    find_span_at_risk,
    span_since_failover,
)
from fleetgauge_operations.recovery.record_diff import (
    MAX_COMPARED,
    count_fingerprints,
    fingerprint_record,
    read_records,
)

_SAMPLE_SIZE = 3


@dataclass(frozen=True, slots=True)
class FailbackInspection:
    """Inspects a mirror whose source cluster failed and is available again.

    All methods raise KafkaUnavailableError.
    """

    fleet: Fleet
    mirror: Mirror

    def inspect(self, state: ReplicationState, since: datetime | None) -> FailbackReport:
        """Compare both clusters.

        ``since`` is the time of the failover; without it, the secondary's new records are not reported.
        """
        source, destination = (
            self.fleet.cluster(cluster).access for cluster in (self.mirror.source, self.mirror.destination)
        )
        source_offsets, destination_offsets, admin = (
            TopicOffsets(source, CLIENT_ID),
            TopicOffsets(destination, CLIENT_ID),
            ClusterAdmin(source),
        )
        for client in (source_offsets, destination_offsets, admin):
            client.start()
        topics = source_offsets.describe_topics(
            [name for name in source_offsets.list_topic_names() if self.mirror.replicates(name)]
        )
        partitions = [
            TopicPartition(name, partition)
            for name, topic in sorted(topics.items())
            for partition in topic.partitions
        ]
        replicas = destination_offsets.select_led_partitions(
            [self._replica_of(partition) for partition in partitions]
        )
        source_logs = _read_logs(source_offsets, partitions)
        replica_logs = _read_logs(destination_offsets, replicas)
        return FailbackReport(
            primary=self.mirror.source,
            secondary=self.mirror.destination,
            names_kept=self.mirror.names == "kept",
            partitions=tuple(
                self._inspect_partition(
                    partition,
                    source_logs[partition],
                    replica_logs.get(self._replica_of(partition)),
                    state,
                    since,
                )
                for partition in partitions
                if partition in source_logs
            ),
            ordered=tuple(
                name
                for name in sorted(topics)
                if "compact" in admin.read_topic_setting(name, "cleanup.policy")
            ),
        )

    def _replica_of(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self.mirror.destination_topic(partition.topic), partition.partition)

    def _inspect_partition(
        self,
        partition: TopicPartition,
        source_log: LogRange,
        replica_log: LogRange | None,
        state: ReplicationState,
        since: datetime | None,
    ) -> PartitionFailback:
        history = state.history(PartitionRoute(self.mirror.source, self.mirror.destination, *partition))
        replicated_until = history.replicated_until if history else 0
        at_risk = find_span_at_risk(replicated_until - 1 if replicated_until else None, source_log)
        new = None
        if since is not None and replica_log is not None:
            failover = self._find_offset_at(self._replica_of(partition), since, replica_log.end)
            new = span_since_failover(failover, replica_log)
        stranded = self._find_stranded(partition, at_risk, history, replica_log)
        return PartitionFailback(partition.topic, partition.partition, at_risk, stranded, new)

    def _find_stranded(
        self,
        partition: TopicPartition,
        at_risk: OffsetSpan,
        history: OffsetHistory | None,
        replica_log: LogRange | None,
    ) -> StrandedRecords | None:
        """Return the records at risk that the replica lacks; None if there are too many to compare."""
        log = replica_log or LogRange(0, 0)
        start = translate(at_risk.first, history, log).resume if history else None
        start = log.start if start is None else start
        if max(len(at_risk), log.end - start) > MAX_COMPARED:
            return None
        source, destination = (
            self.fleet.cluster(cluster).access for cluster in (self.mirror.source, self.mirror.destination)
        )
        replicated = count_fingerprints(
            read_records(destination, self._replica_of(partition), start, log.end)
        )
        stranded = []
        for record in read_records(source, partition, at_risk.first, at_risk.end):
            if replicated[fingerprint := fingerprint_record(record)]:
                replicated[fingerprint] -= 1
            else:
                stranded.append(record)
        return _summarize(stranded)

    def _find_offset_at(self, partition: TopicPartition, since: datetime, end: int) -> int:
        reader = TopicReader(self.fleet.cluster(self.mirror.destination).access, partition.topic, CLIENT_ID)
        reader.start()
        try:
            return reader.find_offsets_at([partition.partition], since).get(partition.partition, end)
        finally:
            reader.stop()


def _read_logs(
    offsets: TopicOffsets, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, LogRange]:
    wanted = tuple(partitions)
    starts, ends = offsets.read_start_offsets(wanted), offsets.read_end_offsets(wanted)
    return {
        partition: LogRange(starts[partition], ends[partition])
        for partition in wanted
        if partition in starts and partition in ends
    }


def _summarize(records: list[ConsumerRecord]) -> StrandedRecords:
    if not records:
        return NO_STRANDED_RECORDS
    timestamps_ms = [record.at_ms for record in records]
    return StrandedRecords(
        count=len(records),
        bytes=sum(len(record.key or b"") + len(record.value) for record in records),
        first_ms=min(timestamps_ms),
        last_ms=max(timestamps_ms),
        offsets=tuple(record.offset for record in records[:_SAMPLE_SIZE]),
    )
