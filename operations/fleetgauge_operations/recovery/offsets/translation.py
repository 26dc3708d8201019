"""Translate a committed offset from a source cluster to its replica, as MirrorMaker 2 does (KIP-545).

MirrorMaker 2 keeps at most 64 offset syncs per partition, at exponentially growing distances, and discards
all of them when its source offset rewinds (Kafka's OffsetSyncStore); so a group that lags far behind is
translated to a far lower offset than necessary. This implementation keeps every offset sync, so its result
is never lower than MirrorMaker's, with one exception: after the destination topic was recreated, MirrorMaker
continues with the offset syncs of the old topic.
"""

from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, LogRange
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory


@dataclass(frozen=True, slots=True)
class Translation:
    """The destination offset to read next; None if no checkpoint lies at or before the committed offset."""

    resume: int | None
    evidence: Checkpoint | None = None
    early_at_most: int | None = None
    """Maximum number of offsets between ``resume`` and the first unconsumed record; None after a recopy."""
    possible_loss: bool = False
    """Unconsumed records may lie before the log start offset, where they can no longer be read."""
    is_recopying: bool = False
    """The mirror restarted and has not yet replicated as far as before: it still needs the source."""


def translate(committed: int, history: OffsetHistory, log: LogRange) -> Translation:
    """Translate an offset committed in the source cluster; ``log`` is the destination's log."""
    evidence = history.latest_run_floor(committed, log)
    watermark = history.watermark_after(committed, log)
    earliest = evidence.dst_offset + (evidence.src_offset < committed) if evidence else -1
    if watermark and watermark.dst_offset > earliest:
        evidence, earliest = watermark, watermark.dst_offset
    if evidence is None:
        return Translation(None)
    resume = log.clamp(earliest)
    unconsumed = history.ceiling(committed, log)
    early = max(0, (unconsumed.dst_offset if unconsumed else log.end) - resume)
    return Translation(
        resume,
        evidence,
        None if history.has_recopies else early,
        earliest < log.start,
        history.is_recopying,
    )
