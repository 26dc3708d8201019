"""How far a mirror is behind, as far as what is known of it says."""

from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.offset_sync_store import History


@dataclass(frozen=True, slots=True)
class Lag:
    """Of one partition of one mirror: what is lost with its source, at most.

    Upper bounds, as MirrorMaker does not tell at once of what it has copied.
    """

    records_at_most: int
    seconds_at_most: float | None
    """For how long at most the first of them has been at the source; None if nobody knows."""


def lag_of(history: History, now_ms: int) -> Lag | None:
    """None while nobody has looked at both ends."""
    seen = history.latest_watermark
    if seen is None:
        return None
    records = max(0, seen.src_offset - history.copied_until)
    if not records:
        return Lag(0, 0)
    # What was not there at that look has come since.
    before = history.end_seen_before(history.copied_until)
    return Lag(records, (now_ms - before.observed_ms) / 1000 if before else None)
