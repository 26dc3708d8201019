"""Where a group goes on in a mirror of what it reads: what MirrorMaker 2's checkpoints say (KIP-545), from
all that is known.

MirrorMaker 2 keeps 64 syncs a partition, ever further apart, and forgets them all when its source rewinds
(Kafka's OffsetSyncStore); so a group that is far behind is sent far back. Nothing is forgotten here, so no
answer is earlier than its, but for one: after the destination has been made anew it goes on by what it knew
of the old one.
"""

from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Log
from fleetgauge_operations.recovery.offsets.offset_sync_store import History


@dataclass(frozen=True, slots=True)
class Translation:
    """``resume``: the offset to read next; None if nothing is known at or before what is committed."""

    resume: int | None
    by: Checkpoint | None = None
    early_at_most: int | None = None
    """How many offsets before the first record that is not consumed; None if some records are there twice."""
    possible_loss: bool = False
    """What is not consumed may lie before the log's start."""
    unfinished: bool = False
    """An earlier copy reaches further than the last one yet does: the source must live to finish that."""


def translated(committed: int, history: History, log: Log) -> Translation:
    """``committed``: the offset that the group reads next at the source; ``log``: the destination's."""
    at = history.newest_floor(committed, log)
    after = history.watermark_after(committed, log)
    earliest = at.dst_offset + (at.src_offset < committed) if at else -1
    if after and after.dst_offset > earliest:
        at, earliest = after, after.dst_offset
    if at is None:
        return Translation(None)
    resume = log.clamped(earliest)
    left = history.ceiling(committed, log)
    early = max(0, (left.dst_offset if left else log.end) - resume)
    return Translation(
        resume, at, None if history.copied_again else early, earliest < log.start, history.unfinished
    )
