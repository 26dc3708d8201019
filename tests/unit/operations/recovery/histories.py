"""Offset histories built from pairs of offsets."""

from collections.abc import Iterable

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory

Pairs = Iterable[tuple[int, int]]
WHOLE_LOG = LogRange(0, 2**63 - 1)
IDS = TopicIds("s", "d")


def build_history(
    pairs: Pairs = (), watermarks: Pairs = (), fences: Pairs = (), ids: TopicIds | None = IDS
) -> OffsetHistory:
    """Append syncs first, then watermarks, then fences."""
    history = OffsetHistory(PartitionRoute("A", "d", "t", 0), ids)
    rows_by_origin = (
        (CheckpointOrigin.SYNC, pairs),
        (CheckpointOrigin.IDLE_WATERMARK, watermarks),
        (CheckpointOrigin.FENCE, fences),
    )
    for origin, rows in rows_by_origin:
        for row in rows:
            history.append(Checkpoint(*row, origin=origin))
    return history


def offsets_of(checkpoint: Checkpoint | None) -> tuple[int, int] | None:
    return checkpoint and (checkpoint.src_offset, checkpoint.dst_offset)
