"""A checkpoint: what a record's offset at the source is at the destination. A watermark: what follows it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Origin(StrEnum):
    """Who told it."""

    SYNC = "sync"
    """MirrorMaker 2: a record at ``src_offset`` is the one at ``dst_offset``."""
    TRACER = "tracer"
    """The same of a record of our own."""
    IDLE_WATERMARK = "idle_watermark"
    """Every record before ``src_offset`` that ever arrives lies before ``dst_offset``, all others there or
    after.

    So it is where the destination's end was read first and the source's end after it, and the source's last
    record is the last of it that is found before the former. A mirror that has nothing to copy tells of
    nothing, and holds back what is mapped by its checkpoints: this does not.
    """
    FENCE = "fence"
    """The second half of a watermark alone, of a mirror that lags: no record from ``src_offset`` on lies
    before ``dst_offset``, as none was there yet when the destination's end was read."""

    @property
    def names_a_record(self) -> bool:
        """Whether there is a record at these offsets."""
        return self in (Origin.SYNC, Origin.TRACER)


class Checkpoint(NamedTuple):
    """One row of what is known of a mirrored partition."""

    src_offset: int
    dst_offset: int
    observed_ms: int = 0
    """Since 1970."""
    origin: Origin = Origin.SYNC


@dataclass(frozen=True, slots=True)
class Route:
    """One partition on its way from one cluster to another. ``topic``: as the source calls it."""

    source: str
    destination: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Kafka's ids of a route's topic at both ends: offsets mean nothing in another topic of the same name."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Log:
    """A partition's offsets: ``start`` is the first that is kept, ``end`` the next that will be written."""

    start: int
    end: int

    def clamped(self, offset: int) -> int:
        """The nearest offset from which can be read."""
        return min(max(offset, self.start), self.end)
