"""Checks of map_position in simulated mirrorings, in which the position of every message is known.

MirrorMaker 2's own store of offset syncs is the comparison.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fleetgauge_operations.recovery.offsets import checkpoint, mapping, offset_sync_store
from tests.oracle.mirrors import Message, MirroringResult, ObservedRow
from tests.oracle.offset_sync_store import OffsetSyncStore

RULES = ("uber", "plus_one", "watermark")
#: Traits with which MirrorMaker cannot tell which topic or log its offsets belong to.
_RECREATED = frozenset({"cut", "source_anew", "destination_anew"})
#: Without these traits, the replay is bounded by the distance of checkpoints.
_UNBOUNDED_REPLAY = _RECREATED | {"copied_again", "gaps", "retention", "stale"}


@dataclass(frozen=True, slots=True)
class OffsetModules:
    """The modules under test: the real ones, or a mutant of them."""

    checkpoint: Any = checkpoint
    history: Any = offset_sync_store
    mapping: Any = mapping


CURRENT_MODULES = OffsetModules()


@dataclass(frozen=True, slots=True)
class MappingCase:
    """The histories and the log of a simulated mirroring, from which positions are mapped."""

    mirroring: MirroringResult
    code: OffsetModules
    active: Mapping[str, Any]
    passive: Mapping[str, Any]
    log: Any

    def map_position(self, position: int, rule: str) -> Any:
        rule = self.code.mapping.MappingRule(rule)
        return self.code.mapping.map_position(position, self.active, self.passive, self.log, rule)


def build_case(mirroring: MirroringResult, code: OffsetModules = CURRENT_MODULES) -> MappingCase:
    active, passive = (build_histories(mirroring, side, code) for side in ("active", "passive"))
    log = code.checkpoint.LogRange(mirroring.passive_start, len(mirroring.passive))
    return MappingCase(mirroring, code, active, passive, log)


def build_histories(
    mirroring: MirroringResult, side: str, code: OffsetModules = CURRENT_MODULES
) -> dict[str, Any]:
    """Return the history of every source on one side, as a collector would keep it."""
    topic_ids = code.checkpoint.TopicIds
    histories = {}
    for (row_side, source), rows in mirroring.rows.items():
        if row_side == side:
            route = code.checkpoint.PartitionRoute(source, side, "t", 0)
            history = code.history.OffsetHistory(route, ids=None)
            _append_rows(history, rows, code)
            if history.ids:
                history.update_topic_ids(topic_ids(history.ids.source, mirroring.ids[side]))
            histories[source] = history
    return histories


def _append_rows(history: Any, rows: Iterable[ObservedRow], code: OffsetModules) -> None:
    module = code.checkpoint
    for row in rows:
        history.update_topic_ids(module.TopicIds(*row.ids))
        history.append(module.Checkpoint(row.src, row.dst, 0, module.CheckpointOrigin(row.kind)))


def sample_positions(mirroring: MirroringResult) -> list[int]:
    """Return some positions in order, including those at and after checkpoints."""
    end = len(mirroring.active)
    edges = [row.dst for (side, _), rows in mirroring.rows.items() if side == "active" for row in rows][:2]
    positions = {*range(0, end, max(1, end // 5)), end, *edges, *(edge + 1 for edge in edges)}
    return sorted(position for position in positions if position <= end)


def find_violations(case: MappingCase) -> Iterator[str]:
    """Yield a line for each violated property."""
    mirroring = case.mirroring
    for rule in RULES:
        results = [(at, case.map_position(at, rule)) for at in sample_positions(mirroring)]
        for position, result in results:
            where = f"seed {mirroring.seed}, {rule}, position {position}: {result.resume}"
            required = mirroring.first_required_offset(position)
            unconsumed = mirroring.first_unconsumed_offset(position)
            if not mirroring.passive_start <= result.resume <= required:
                yield f"{where} skips the record at {required}"
            if result.early_at_most is not None and unconsumed - result.resume > result.early_at_most:
                yield f"{where} is further before {unconsumed} than early_at_most {result.early_at_most}"
            is_bounded = not (_UNBOUNDED_REPLAY & mirroring.traits or result.is_unbounded)
            if is_bounded and result.resume < unconsumed - max_span(mirroring, position):
                yield f"{where} is further before {unconsumed} than two spans between checkpoints"
        for (before, result), (after, later_result) in pairwise(results):
            if later_result.resume < result.resume:
                yield (
                    f"seed {mirroring.seed}, {rule}: {result.resume} at {before}, "
                    f"{later_result.resume} at {after}"
                )


def max_span(mirroring: MirroringResult, position: int) -> int:
    """Return the maximum length of two checkpoint intervals before a source's first unconsumed record."""
    reached = mirroring.last_consumed_by_source(position)
    spans = (
        _span(mirroring.passive, source, reached.get(source), mirroring.sync_interval)
        for _, source in mirroring.rows
    )
    return max(spans, default=0)


def _span(log: tuple[Message | None, ...], source: str, reached: tuple[int, int] | None, every: int) -> int:
    messages = [
        (offset, message.key) for offset, message in enumerate(log) if message and message.source == source
    ]
    consumed = [offset for offset, key in messages if reached and key <= reached]
    unconsumed = next((offset for offset, key in messages if not reached or key > reached), len(log))
    before = consumed[-2 * every :]
    return unconsumed - before[0] if before else unconsumed


def map_by_mirror_maker(case: MappingCase, position: int) -> Any:
    """Map a position with the offset syncs that MirrorMaker 2 would keep; None if it would mix up logs."""
    if _RECREATED & case.mirroring.traits:
        return None
    active, passive = (
        {
            source: _build_mirror_maker_history(case, side, source)
            for row_side, source in case.mirroring.rows
            if row_side == side
        }
        for side in ("active", "passive")
    )
    return mapping.map_position(position, active, passive, case.log, mapping.MappingRule.PLUS_ONE)


def _build_mirror_maker_history(case: MappingCase, side: str, source: str) -> offset_sync_store.OffsetHistory:
    store = OffsetSyncStore()
    for row in case.mirroring.rows[side, source]:
        if row.kind == "sync":
            store.sync(row.src, row.dst)
    history = offset_sync_store.OffsetHistory(checkpoint.PartitionRoute(source, side, "t", 0), ids=None)
    for sync in store.kept():
        history.append(checkpoint.Checkpoint(sync.upstream, sync.downstream))
    return history
