"""The offset history of one mirrored partition, kept for the lifetime of its topics.

A mirror replicates in order, so a checkpoint also bounds the records that it does not name: earlier source
records lie before it in the destination, later ones after it. That no longer holds when offsets go back:

- Source offset only: the mirror restarted and replicates some records a second time. Checkpoints of each
  replication run bound the records of that run.
- Destination offset: the destination log was truncated, for example by an unclean leader election.
- Source end offset (as seen by a watermark), or a topic id: the topic was recreated, and all earlier
  checkpoints are invalid.

One case cannot be detected: a mirror that restarts at a record that it had replicated but not reported. Until
it has replicated again all records of the earlier run, such a record may lie before the offset that the
checkpoints imply.
"""

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.replication_runs import (
    ConsumedPrefix,
    HistoryUpdate,
    ReplicationRuns,
)
from fleetgauge_operations.recovery.offsets.watermarks import Watermarks


class OffsetHistory:
    """The checkpoints and watermarks of one mirrored partition.

    Rows of one origin are appended in the order in which that origin reported them; rows of different origins
    may be interleaved in any order.
    """

    __slots__ = (
        "_last_by_origin",
        "_latest",
        "_runs",
        "_watermarks",
        "discarded_count",
        "epoch",
        "ids",
        "route",
    )

    def __init__(self, route: PartitionRoute, ids: TopicIds | None) -> None:
        self.route = route
        self.ids = ids
        """None if unknown; then a truncated log cannot be distinguished from a recreated topic."""
        self.epoch = 0
        """Incremented whenever offsets go back or a topic is recreated."""
        self.discarded_count = 0
        """How many checkpoints were discarded because they no longer apply."""
        self._clear()

    def _clear(self) -> None:
        self._runs = ReplicationRuns()
        self._watermarks = Watermarks()
        self._last_by_origin: dict[CheckpointOrigin, Checkpoint] = {}
        self._latest: Checkpoint | None = None

    @property
    def count(self) -> int:
        """The number of valid checkpoints."""
        return len(self._runs)

    @property
    def latest(self) -> Checkpoint | None:
        """The row appended last; its age is the maximum staleness of this history."""
        return self._latest

    @property
    def last_sync(self) -> Checkpoint | None:
        """The last offset sync that MirrorMaker reported."""
        return self._last_by_origin.get(CheckpointOrigin.SYNC)

    @property
    def latest_watermark(self) -> Checkpoint | None:
        """The latest watermark or fence; its ``src_offset`` is the source's last observed end offset."""
        return self._watermarks.latest

    @property
    def replicated_until(self) -> int:
        """The source offset before which all records are known to be replicated."""
        latest = (
            self._last_by_origin.get(origin)
            for origin in CheckpointOrigin
            if origin is not CheckpointOrigin.FENCE
        )
        return max((row.src_offset + row.origin.identifies_record for row in latest if row), default=0)

    def watermark_at_or_before(self, src_offset: int) -> Checkpoint | None:
        """Return the latest observation at which the source ended at or before that offset."""
        return self._watermarks.at_or_before(src_offset)

    @property
    def has_recopies(self) -> bool:
        """Whether the mirror restarted, so that some records exist twice in the destination."""
        return self._runs.run_count > 1

    @property
    def is_recopying(self) -> bool:
        """Whether the latest replication run has not yet reached as far as an earlier one."""
        return self._runs.is_recopying

    def update_topic_ids(self, ids: TopicIds) -> HistoryUpdate:
        """Set the topic ids that the following rows refer to; other ids invalidate the history."""
        if ids == self.ids:
            return HistoryUpdate.UNCHANGED
        self.ids = ids
        self.epoch += 1
        return self._invalidate()

    def expire(self, log_start: int) -> None:
        """Discard replication runs of which nothing can be read any more, to keep lookups fast."""
        count_before = self.count
        self._runs.expire(log_start)
        self.discarded_count += count_before - self.count

    def append(self, row: Checkpoint) -> HistoryUpdate:
        """Add a checkpoint or watermark. Every result but UNCHANGED and ADDED begins a new epoch."""
        previous = self._last_by_origin.get(row.origin)
        if previous and previous[:2] == row[:2]:
            return HistoryUpdate.UNCHANGED
        update = self._append_record(row) if row.origin.identifies_record else self._append_watermark(row)
        if update not in (HistoryUpdate.UNCHANGED, HistoryUpdate.ADDED):
            self.epoch += 1
        self._last_by_origin[row.origin] = self._latest = row
        return update

    def _append_record(self, row: Checkpoint) -> HistoryUpdate:
        previous = self._last_by_origin.get(row.origin)
        goes_back = previous is not None and row.dst_offset <= previous.dst_offset
        is_contradiction = goes_back or self._watermarks.is_contradicted_by(row)
        update = None if is_contradiction else self._runs.insert(row)
        if update is None:
            update = self._truncate(row.dst_offset)
            self._runs.insert(row)
        if update is HistoryUpdate.RECOPIED and self._runs.is_last_run_disjoint:
            # The new run adds records that the destination lacked when watermarks stated it had them.
            self._watermarks.discard_lower_halves()
        return update

    def _append_watermark(self, row: Checkpoint) -> HistoryUpdate:
        update, latest = HistoryUpdate.ADDED, self._watermarks.latest
        if self._runs.is_contradicted_by(row) or (latest and row.src_offset < latest.src_offset):
            update = self._invalidate()
        elif latest and row.dst_offset < latest.dst_offset:
            update = self._truncate(row.dst_offset)
        self._watermarks.append(row)
        return update

    def _truncate(self, dst_offset: int) -> HistoryUpdate:
        if self.ids is None:
            return self._invalidate()
        count_before = self.count
        self._runs.truncate(dst_offset)
        self._watermarks.truncate(dst_offset)
        self._last_by_origin = {
            origin: row for origin, row in self._last_by_origin.items() if row.dst_offset < dst_offset
        }
        self.discarded_count += count_before - self.count
        return HistoryUpdate.TRUNCATED

    def _invalidate(self) -> HistoryUpdate:
        self.discarded_count += self.count
        self._clear()
        return HistoryUpdate.INVALIDATED

    def consumed_prefix(self, position: int) -> ConsumedPrefix | None:
        """Return which source records are consumed by a group at that destination offset.

        See ReplicationRuns.consumed_prefix.
        """
        return self._runs.consumed_prefix(position)

    def floor(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return a checkpoint at or before that source offset.

        No readable record from that source offset on lies before the checkpoint in the destination.
        """
        return self._runs.floor(src_offset, log)

    def latest_run_floor(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return the floor in the latest replication run that has one.

        Unlike ``floor``, this ignores that an earlier run may hold later records than the latest run has yet.
        """
        return self._runs.latest_run_floor(src_offset, log)

    def watermark_before(self, dst_offset: int) -> Checkpoint | None:
        """Return the latest watermark whose earlier source records all lie before that destination offset."""
        return self._watermarks.before(dst_offset)

    def watermark_after(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return the latest watermark or fence that no record from that source offset on precedes."""
        return self._watermarks.after(src_offset, log.end)

    def ceiling_dst(self, dst_offset: int) -> Checkpoint | None:
        """Return the first checkpoint at or after that destination offset."""
        return self._runs.ceiling_dst(dst_offset)

    def ceiling(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return the first readable checkpoint at or after that source offset."""
        return self._runs.ceiling(src_offset, log)
