"""Observe every mirror, update the replication state, and store new checkpoints in the lake."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import (
    KafkaUnavailableError,
    ReportTopicChange,
    TopicOffsets,
    log_topic_change,
)
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore, CheckpointStoreLostError
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID, MirrorObserver
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, PartitionRoute
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord, ReplicationState
from fleetgauge_operations.recovery.offsets.sync_ingest import ingest_snapshot

_log = logging.getLogger("fleetgauge.recover")

#: About 300 MB of memory.
_MAX_UNSTORED = 1_000_000


class SyncCollector:
    """Collects checkpoints of all mirrors; a mirror with an unreachable cluster is skipped."""

    def __init__(
        self,
        fleet: Fleet,
        store: CheckpointStore,
        now_ms: Callable[[], int],
        watermark_every_ms: int = 0,
        report_topic_change: ReportTopicChange = log_topic_change,
    ) -> None:
        self._store = store
        self._watermark_every_ms = watermark_every_ms
        mirrors = fleet.recovery.mirrors
        clusters = {cluster for mirror in mirrors for cluster in (mirror.source, mirror.destination)}
        self._offsets = {
            cluster: TopicOffsets(fleet.cluster(cluster).access, CLIENT_ID) for cluster in sorted(clusters)
        }
        self._started: set[str] = set()
        self._observers = [
            MirrorObserver(fleet, mirror, self._offsets, store, now_ms, report_topic_change)
            for mirror in mirrors
        ]
        self._unstored: list[CheckpointRecord] = []
        self.reachable: frozenset[str] = frozenset()
        """The clusters that answered the last inspection."""
        self.source_ends: dict[str, dict[tuple[str, int], int]] = {}
        """End offsets of mirrored partitions at the last inspection, by source cluster, where available."""
        self._read_until: dict[str, int] = {}

    def start(self) -> None:
        """Load the stored checkpoints. Raises: TableStoreError."""
        stored = self._store.read()
        self.state = ReplicationState(stored.records)
        self._next_ordinal = stored.next_ordinal

    def stop(self) -> None:
        """Close all readers."""
        for observer in self._observers:
            observer.stop()

    def collect(self) -> bool:
        """Observe all mirrors once; return whether any could be observed. Raises TableStoreError."""
        topic_names, observed_count = self._list_topics(), 0
        self.reachable, self.source_ends = frozenset(topic_names), {}
        for observer in self._observers:
            mirror = observer.mirror
            if mirror.source in topic_names:
                replicated = filter(mirror.replicates, topic_names[mirror.source])
                self.state.set_topics(mirror.source, mirror.destination, replicated)
            if mirror.source not in topic_names or mirror.destination not in topic_names:
                continue
            try:
                observation = observer.observe(topic_names[mirror.source])
            except KafkaUnavailableError as error:
                _log.warning("mirror from %s to %s: %s", mirror.source, mirror.destination, error)
                continue
            observed_count += 1
            snapshot = observation.snapshot
            self._unstored += ingest_snapshot(self.state, snapshot, self._watermark_every_ms)
            ends = {partition: log_ends.source for partition, log_ends in snapshot.ends.items()}
            self.source_ends[mirror.source] = self.source_ends.get(mirror.source, {}) | ends
            self._read_until |= observation.read_until
        return observed_count > 0

    def _list_topics(self) -> dict[str, frozenset[str]]:
        """Return the topics of each reachable cluster.

        All clusters are queried in parallel, so that a region that is down costs one timeout only.
        """
        with ThreadPoolExecutor(len(self._offsets) or 1) as executor:
            futures = {cluster: executor.submit(self._list_topic_names, cluster) for cluster in self._offsets}
        topic_names = {}
        for cluster, future in futures.items():
            try:
                topic_names[cluster] = future.result()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", cluster, error)
        return topic_names

    def _list_topic_names(self, cluster: str) -> frozenset[str]:
        """Return a cluster's topics. Raises: KafkaUnavailableError, also without readable credentials."""
        offsets = self._offsets[cluster]
        if cluster not in self._started:
            offsets.start()
            self._started.add(cluster)
        return offsets.list_topic_names()

    def add_checkpoint(self, route: PartitionRoute, checkpoint: Checkpoint) -> None:
        """Add a checkpoint from another origin, about the topics of the last inspection."""
        ids = self.state.topic_ids(route)
        if ids and (record := self.state.apply_checkpoint(route, ids, checkpoint)):
            self._unstored.append(record)

    def store_checkpoints(self) -> int:
        """Write new checkpoints to the lake; return their number.

        Raises: TableStoreError if the lake is unavailable, so that a later call may succeed;
        CheckpointStoreLostError if no later call can.
        """
        if len(self._unstored) > _MAX_UNSTORED:
            raise CheckpointStoreLostError(
                f"{len(self._unstored):,} checkpoints could not be written: check the lake, then restart"
            )
        count = len(self._unstored)
        if count:
            self._store.append(self._unstored, self._next_ordinal, self._read_until)
            self._next_ordinal += count
            self._unstored = []
        return count
