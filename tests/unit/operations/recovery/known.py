"""Histories from pairs of offsets."""

from collections.abc import Iterable

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import History

Pairs = Iterable[tuple[int, int]]
EVER = Log(0, 2**63 - 1)
IDS = TopicIds("s", "d")


def known(
    pairs: Pairs = (), watermarks: Pairs = (), fences: Pairs = (), ids: TopicIds | None = IDS
) -> History:
    """Syncs first, then watermarks, then fences."""
    history = History(Route("A", "d", "t", 0), ids)
    told = ((Origin.SYNC, pairs), (Origin.IDLE_WATERMARK, watermarks), (Origin.FENCE, fences))
    for origin, some in told:
        for pair in some:
            history.append(Checkpoint(*pair, origin=origin))
    return history


def pair(found: Checkpoint | None) -> tuple[int, int] | None:
    return found and (found.src_offset, found.dst_offset)
