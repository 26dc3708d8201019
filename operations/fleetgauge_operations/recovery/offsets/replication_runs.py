"""Checkpoints of one mirrored partition, grouped by replication run.

A mirror that restarts at an older source offset replicates some records twice; each restart begins a new run.
Within a run both offsets ascend, and in the destination each run follows the one before it.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, CheckpointOrigin, LogRange

_ORIGINS = tuple(CheckpointOrigin)


class HistoryUpdate(StrEnum):
    """What a new row did to the offset history of a partition."""

    UNCHANGED = "unchanged"
    ADDED = "added"
    RECOPIED = "recopied"
    """The mirror restarted at an older source offset. Earlier checkpoints still hold for earlier runs."""
    TRUNCATED = "truncated"
    """The destination log lost its end, and the checkpoints of that part are discarded."""
    INVALIDATED = "invalidated"
    """Offsets have a new meaning, for example after a topic was recreated; all rows are discarded."""


class ReplicationRun:
    """The checkpoints of one run, never empty.

    Kept in arrays, because there are millions of rows; lookups are binary searches.
    """

    __slots__ = ("_dst", "_observed_ms", "_origin", "_src", "is_truncated")

    def __init__(self, first: Checkpoint) -> None:
        self.is_truncated = False
        """The records after its last checkpoint were lost, and may not have been replicated again."""
        self._src = array("q", (first.src_offset,))
        self._dst = array("q", (first.dst_offset,))
        self._observed_ms = array("q", (first.observed_ms,))
        self._origin = array("b", (_ORIGINS.index(first.origin),))

    def __len__(self) -> int:
        return len(self._src)

    def __getitem__(self, index: int) -> Checkpoint:
        origin = _ORIGINS[self._origin[index]]
        return Checkpoint(self._src[index], self._dst[index], self._observed_ms[index], origin)

    @property
    def last_src(self) -> int:
        """The source offset of the last checkpoint."""
        return self._src[-1]

    @property
    def last_dst(self) -> int:
        """The destination offset of the last checkpoint."""
        return self._dst[-1]

    def append(self, row: Checkpoint) -> None:
        """Add a checkpoint, both of whose offsets are higher than those of the last one."""
        self._src.append(row.src_offset)
        self._dst.append(row.dst_offset)
        self._observed_ms.append(row.observed_ms)
        self._origin.append(_ORIGINS.index(row.origin))

    def insert(self, row: Checkpoint) -> HistoryUpdate | None:
        """Insert a checkpoint in order; return None if it contradicts its neighbours."""
        index = bisect_left(self._dst, row.dst_offset)
        if index < len(self) and self._dst[index] == row.dst_offset:
            return HistoryUpdate.UNCHANGED if self._src[index] == row.src_offset else None
        if index and self._src[index - 1] >= row.src_offset:
            return None
        if index < len(self) and self._src[index] <= row.src_offset:
            return None
        self._src.insert(index, row.src_offset)
        self._dst.insert(index, row.dst_offset)
        self._observed_ms.insert(index, row.observed_ms)
        self._origin.insert(index, _ORIGINS.index(row.origin))
        return HistoryUpdate.ADDED

    def truncate(self, dst_offset: int) -> None:
        """Discard the checkpoints at or after that destination offset."""
        index = bisect_left(self._dst, dst_offset)
        for column in (self._src, self._dst, self._observed_ms, self._origin):
            del column[index:]
        self.is_truncated = True

    def floor_src(self, src_offset: int, end: int) -> Checkpoint | None:
        """Return the latest checkpoint up to that source offset whose destination offset is below ``end``."""
        index = min(bisect_right(self._src, src_offset), bisect_left(self._dst, end))
        return self[index - 1] if index else None

    def floor_dst(self, dst_offset: int) -> Checkpoint | None:
        """Return the latest checkpoint at or before that destination offset."""
        index = bisect_right(self._dst, dst_offset)
        return self[index - 1] if index else None

    def ceiling_src(self, src_offset: int) -> Checkpoint | None:
        """Return the first checkpoint at or after that source offset."""
        index = bisect_left(self._src, src_offset)
        return self[index] if index < len(self) else None

    def ceiling_dst(self, dst_offset: int) -> Checkpoint | None:
        """Return the first checkpoint at or after that destination offset."""
        index = bisect_left(self._dst, dst_offset)
        return self[index] if index < len(self) else None

    def nth_src_after(self, src_offset: int, n: int) -> int | None:
        """Return the source offset of the nth checkpoint beyond that source offset."""
        index = bisect_right(self._src, src_offset) + n - 1
        return self._src[index] if index < len(self) else None


class ConsumedPrefix(NamedTuple):
    """All source records before ``next_src`` are consumed, or will never be replicated.

    ``evidence`` is the checkpoint or watermark that proves it.
    """

    next_src: int
    evidence: Checkpoint


class ReplicationRuns:
    """All replication runs of one source partition in one destination log, in the order of that log."""

    __slots__ = ("_runs", "_unknown_until_src")

    def __init__(self) -> None:
        self._runs: list[ReplicationRun] = []
        self._unknown_until_src = 0
        """Source records before it may lie where all checkpoints were discarded."""

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def run_count(self) -> int:
        """The number of known runs."""
        return len(self._runs)

    @property
    def is_recopying(self) -> bool:
        """Whether an earlier run reached a higher source offset than the last run has so far."""
        return any(run.last_src > self._runs[-1].last_src for run in self._runs)

    @property
    def is_last_run_disjoint(self) -> bool:
        """Whether the last run begins with a record that no earlier run is known to have replicated."""
        first_src = self._runs[-1][0].src_offset
        return not any(run[0].src_offset <= first_src <= run.last_src + 1 for run in self._runs[:-1])

    def insert(self, row: Checkpoint) -> HistoryUpdate | None:
        """Add a checkpoint to the run that it belongs to; return None if it contradicts the others."""
        if not self._runs:
            self._runs.append(ReplicationRun(row))
            return HistoryUpdate.ADDED
        last = self._runs[-1]
        if row.dst_offset <= last.last_dst:
            return self._insert_between(row)
        if row.src_offset > last.last_src and not last.is_truncated:
            last.append(row)
            return HistoryUpdate.ADDED
        self._runs.append(ReplicationRun(row))
        return HistoryUpdate.RECOPIED

    def _insert_between(self, row: Checkpoint) -> HistoryUpdate | None:
        """Insert a row whose origin reports late: at the start or end of a run, or inside it."""
        index = sum(run[0].dst_offset <= row.dst_offset for run in self._runs)
        neighbours = self._runs[max(index - 1, 0) : index + 1]
        return next((update for run in neighbours if (update := run.insert(row))), None)

    def truncate(self, dst_offset: int) -> None:
        """Discard the checkpoints at or after that destination offset.

        The next run may replicate again records that were replicated but never reported.
        """
        first = self._runs[0][0] if self._runs else None
        self._runs = [run for run in self._runs if run[0].dst_offset < dst_offset]
        if self._runs:
            self._runs[-1].truncate(dst_offset)
        elif first:
            self._unknown_until_src = max(self._unknown_until_src, first.src_offset)

    def expire(self, dst_offset: int) -> None:
        """Discard runs that lie entirely before that destination offset."""
        while len(self._runs) > 1 and self._runs[1][0].dst_offset <= dst_offset:
            del self._runs[0]

    def consumed_prefix(self, position: int) -> ConsumedPrefix | None:
        """Return which source records are consumed by a group at that destination offset.

        The prefix ends at the first source record that is known to occur only after the position. A mirror
        may restart at an offset before the oldest one in its log, and so bring records that the log lacked.
        """
        started = sum(run[0].dst_offset <= position for run in self._runs)
        floors = [floor for run in self._runs[:started] if (floor := run.floor_dst(position))]
        if not floors:
            return None
        # The record at the position itself is not consumed yet.
        ends = [floor.src_offset + (floor.dst_offset < position) for floor in floors]
        starts = [run[0] for run in self._runs]
        spans = sorted(zip((start.src_offset for start in starts), ends, strict=False))
        upcoming = [ends[-1], *(start.src_offset for start in starts[started:])]
        next_src = min(_first_offset_outside(spans, src_offset) for src_offset in upcoming)
        evidence = [row for row in (*floors, *starts[started:]) if row.src_offset <= next_src]
        return ConsumedPrefix(next_src, max(evidence, key=lambda row: (row.src_offset, -row.dst_offset)))

    def floor(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return a checkpoint at or before that source offset.

        No readable record from that source offset on lies before the checkpoint in the destination.
        """
        floor = None
        if src_offset < self._unknown_until_src:
            return None
        for index, run in enumerate(self._runs):
            run_floor = run.floor_src(src_offset, log.end)
            floor = run_floor or floor
            if not (self._is_expired(index, log) or (run_floor and self._ends_before(index, src_offset))):
                break
        return floor

    def latest_run_floor(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return the latest checkpoint at or before that source offset, in the last run that has one."""
        floors = (run.floor_src(src_offset, log.end) for run in reversed(self._runs))
        return next((floor for floor in floors if floor), None)

    def ceiling(self, src_offset: int, log: LogRange) -> Checkpoint | None:
        """Return the first readable checkpoint at or after that source offset."""
        ceilings = (
            run.ceiling_src(max(src_offset, self._first_readable_src(run, log))) for run in self._runs
        )
        return next((ceiling for ceiling in ceilings if ceiling and ceiling.dst_offset < log.end), None)

    def ceiling_dst(self, dst_offset: int) -> Checkpoint | None:
        """Return the first checkpoint at or after that destination offset."""
        ceilings = (run.ceiling_dst(dst_offset) for run in self._runs)
        return next((ceiling for ceiling in ceilings if ceiling), None)

    def is_contradicted_by(self, watermark: Checkpoint) -> bool:
        """Return whether a record that must lie after the watermark lies before it."""
        later = (run.ceiling_src(watermark.src_offset) for run in self._runs)
        return any(record and record.dst_offset < watermark.dst_offset for record in later)

    def _first_readable_src(self, run: ReplicationRun, log: LogRange) -> int:
        first = run.ceiling_dst(log.start)
        return first.src_offset if first else run[-1].src_offset + 1

    def _is_expired(self, index: int, log: LogRange) -> bool:
        """Return whether a run lies entirely before the log start offset."""
        following = self._runs[index + 1 : index + 2]
        return any(run[0].dst_offset <= log.start for run in following)

    def _ends_before(self, index: int, src_offset: int) -> bool:
        """Return whether a run is known to hold no record from that source offset on.

        After its last checkpoint the destination has room for a limited number of records of the run, which
        were replicated in order. Checkpoints of later runs name records that the run would have replicated
        first: it cannot have copied more of them than fit.
        """
        run, later_runs = self._runs[index], self._runs[index + 1 :]
        if not later_runs or run.last_src >= src_offset:
            return False
        room = later_runs[0][0].dst_offset - run.last_dst - 1
        if not room or run.is_truncated:
            return not room
        reach = (later.nth_src_after(run.last_src, room) for later in later_runs)
        return any(last_src is not None and last_src < src_offset for last_src in reach)


def _first_offset_outside(spans: Sequence[tuple[int, int]], src_offset: int) -> int:
    """Return the first offset from ``src_offset`` on outside all spans, which are half-open and ascending."""
    for start, end in spans:
        if start <= src_offset:
            src_offset = max(src_offset, end)
    return src_offset
