"""Upper bounds of a mirror's replication lag, from the offset syncs and end offsets observed so far."""

from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory


@dataclass(frozen=True, slots=True)
class ReplicationLag:
    """What is lost at most of one mirrored partition if its source cluster fails now.

    Both are upper bounds, because MirrorMaker reports replicated records with a delay.
    """

    records_at_most: int
    seconds_at_most: float | None
    """Maximum age of the oldest unreplicated record; None if unknown."""


def measure_lag(history: OffsetHistory, now_ms: int) -> ReplicationLag | None:
    """Return the replication lag of one partition, or None before the first watermark."""
    watermark = history.latest_watermark
    if watermark is None:
        return None
    records = max(0, watermark.src_offset - history.replicated_until)
    if not records:
        return ReplicationLag(0, 0)
    # The oldest unreplicated record was written after the last observation at which it did not exist.
    earlier = history.watermark_at_or_before(history.replicated_until)
    return ReplicationLag(records, (now_ms - earlier.observed_ms) / 1000 if earlier else None)
