"""Checkpoints and watermarks: statements about which destination offset matches a source offset.

A checkpoint names one record: the record at ``src_offset`` of the source partition is the record at
``dst_offset`` of the destination partition. A watermark separates records: those before ``src_offset`` lie
before ``dst_offset``, all others at or after it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CheckpointOrigin(StrEnum):
    """How a checkpoint was learned."""

    SYNC = "sync"
    """MirrorMaker 2's offset sync: the record at ``src_offset`` was written at ``dst_offset``."""
    TRACER = "tracer"
    """The same statement about a tracer record."""
    IDLE_WATERMARK = "idle_watermark"
    """Every record before ``src_offset`` that is ever replicated lies before ``dst_offset``; all later
    records lie at or after it.

    Taken when the destination's end offset was read first and the source's end offset after it, and the last
    record of the source is known to be replicated before that destination end. MirrorMaker emits no offset
    syncs for an idle source, so without watermarks its last checkpoint would hold back every translation.
    """
    FENCE = "fence"
    """The second half of a watermark only, for a mirror that lags: no record from ``src_offset`` on lies
    before ``dst_offset``, because none had been written when the destination's end offset was read."""

    @property
    def identifies_record(self) -> bool:
        """Whether a record exists at exactly these offsets."""
        return self in (CheckpointOrigin.SYNC, CheckpointOrigin.TRACER)


class Checkpoint(NamedTuple):
    """A source offset and the matching destination offset of one mirrored partition."""

    src_offset: int
    dst_offset: int
    observed_ms: int = 0
    """Milliseconds since the epoch."""
    origin: CheckpointOrigin = CheckpointOrigin.SYNC


@dataclass(frozen=True, slots=True)
class PartitionRoute:
    """A partition and the two clusters between which a mirror replicates it.

    ``topic`` is the name of the topic in the source cluster.
    """

    source: str
    destination: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Kafka's topic ids at both ends of a mirrored partition.

    A topic that was deleted and created again has another id, and offsets of the old topic say nothing about
    the new one.
    """

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class LogRange:
    """A partition's log start offset, and its log end offset (the offset of the next record)."""

    start: int
    end: int

    def clamp(self, offset: int) -> int:
        """Return the nearest offset from which a consumer can read."""
        return min(max(offset, self.start), self.end)
