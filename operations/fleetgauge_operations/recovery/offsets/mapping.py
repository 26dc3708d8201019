"""Translate a group's position between two aggregate clusters that merge the same sources.

Motivation: MirrorMaker 2 translates offsets from a source to its replica only. The offsets of two aggregate
topics do not correspond, because each merges its sources in another order; what they share is the sources
(Uber, "Disaster Recovery for Multi-Region Kafka").

Approach: for each source, derive from the position in the active aggregate which records of that source are
consumed; then find the lowest offset of the passive aggregate at which the first unconsumed record can lie.
The group resumes at the minimum over all sources, because it commits one offset per partition. The rules
differ in what they conclude from a checkpoint:

- ``uber``, as published: resume at the latest passive checkpoint at or before the latest consumed one.
- ``plus_one``: resume one past it if its record is really consumed, that is, if it lies before the position.
- ``watermark``: a checkpoint (x, y) implies two watermarks, (x, y) and (x + 1, y + 1); an idle source adds
  more. All records up to the latest watermark at or before the position are consumed, and no later record
  lies before the passive aggregate's latest watermark for them.

The proof for ``watermark`` covers the other rules, which resume no later: no unconsumed record is skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, LogRange
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.replication_runs import ConsumedPrefix


class ConstraintBasis(StrEnum):
    """What the constraint of one source is derived from."""

    CHECKPOINT = "checkpoint"
    WATERMARK = "watermark"
    NOT_IN_ACTIVE = "not_in_active"
    """The active aggregate has no checkpoint at or before the position: the whole source counts as
    unconsumed."""
    NOT_IN_PASSIVE = "not_in_passive"
    """The passive aggregate has no checkpoint at or before the consumed offset: the next record may lie
    anywhere."""
    RECREATED = "made_anew"
    """The source topic was deleted and created again, and the two aggregates refer to different topics."""


@dataclass(frozen=True, slots=True)
class SourceConstraint:
    """The lower bound that one source puts on the resume offset.

    No unconsumed record of the source lies before ``resume``; None means unbounded.
    """

    resume: int | None
    basis: ConstraintBasis
    active: Checkpoint | None = None
    """The checkpoint that proves what is consumed."""
    passive: Checkpoint | None = None
    """The checkpoint that bounds where unconsumed records lie."""


@dataclass(frozen=True, slots=True)
class MappingResult:
    """Where a group resumes in the passive aggregate, and how exact that is."""

    resume: int
    rule: MappingRule
    per_source: Mapping[str, SourceConstraint]
    possible_loss: bool
    """Unconsumed records may lie before the passive log start offset, where they can no longer be read."""
    early_at_most: int | None
    """Maximum number of offsets between ``resume`` and the first unconsumed record; None if unbounded."""

    @property
    def is_unbounded(self) -> bool:
        """Whether a source has no usable checkpoint, so that the whole log is read again."""
        return self.early_at_most is None


def map_position(
    position: int,
    active: Mapping[str, OffsetHistory],
    passive: Mapping[str, OffsetHistory],
    log: LogRange,
    rule: MappingRule = MappingRule.WATERMARK,
) -> MappingResult:
    """Translate a position in the active aggregate to the passive aggregate.

    ``position`` is the offset that the group reads next; ``log`` is the passive aggregate's log. The
    histories, by source, are those of one partition of the merged topic. Without any source the result is
    unbounded.
    """
    sources = sorted({*active, *passive})
    constraints = {
        source: _constrain(position, active.get(source), passive.get(source), log, rule) for source in sources
    }
    bounds = [constraint.resume for constraint in constraints.values() if constraint.resume is not None]
    if not bounds or len(bounds) < len(constraints):
        return MappingResult(log.start, rule, constraints, possible_loss=False, early_at_most=None)
    earliest = min(bounds)
    resume = log.clamp(earliest)
    latest = min(
        _bound_first_unconsumed(position, active[source], passive[source], log) for source in sources
    )
    return MappingResult(resume, rule, constraints, earliest < log.start, max(0, latest - resume))


def map_with_best_rule(
    position: int, active: Mapping[str, OffsetHistory], passive: Mapping[str, OffsetHistory], log: LogRange
) -> MappingResult:
    """Return the result that resumes latest, by the simplest rule that gives it."""
    results = [map_position(position, active, passive, log, rule) for rule in MappingRule]
    return max(results, key=lambda result: (not result.is_unbounded, result.resume))


def _constrain(
    position: int,
    active: OffsetHistory | None,
    passive: OffsetHistory | None,
    log: LogRange,
    rule: MappingRule,
) -> SourceConstraint:
    consumed = None if active is None else _find_consumed(position, active, rule)
    if active is None or consumed is None:
        return SourceConstraint(None, ConstraintBasis.NOT_IN_ACTIVE)
    if passive is None:
        return SourceConstraint(None, ConstraintBasis.NOT_IN_PASSIVE, consumed.evidence)
    if active.ids and passive.ids and active.ids.source != passive.ids.source:
        return SourceConstraint(None, ConstraintBasis.RECREATED, consumed.evidence)
    if rule is MappingRule.WATERMARK:
        return _constrain_by_watermarks(consumed, passive, log)
    floor = passive.floor(consumed.evidence.src_offset, log)
    if floor is None:
        return SourceConstraint(None, ConstraintBasis.NOT_IN_PASSIVE, consumed.evidence)
    is_consumed = rule is MappingRule.PLUS_ONE and floor.src_offset < consumed.next_src
    return SourceConstraint(
        floor.dst_offset + is_consumed, ConstraintBasis.CHECKPOINT, consumed.evidence, floor
    )


def _find_consumed(position: int, active: OffsetHistory, rule: MappingRule) -> ConsumedPrefix | None:
    by_checkpoint = active.consumed_prefix(position)
    watermark = active.watermark_before(position) if rule is MappingRule.WATERMARK else None
    by_watermark = ConsumedPrefix(watermark.src_offset, watermark) if watermark else None
    prefixes = [prefix for prefix in (by_checkpoint, by_watermark) if prefix]
    return max(prefixes, key=lambda prefix: prefix.next_src, default=None)


def _constrain_by_watermarks(
    consumed: ConsumedPrefix, passive: OffsetHistory, log: LogRange
) -> SourceConstraint:
    floor = passive.floor(consumed.next_src, log)
    watermark = passive.watermark_after(consumed.next_src, log)
    by_checkpoint = floor.dst_offset + (floor.src_offset < consumed.next_src) if floor else -1
    if watermark and watermark.dst_offset > by_checkpoint:
        return SourceConstraint(watermark.dst_offset, ConstraintBasis.WATERMARK, consumed.evidence, watermark)
    if floor is None:
        return SourceConstraint(None, ConstraintBasis.NOT_IN_PASSIVE, consumed.evidence)
    return SourceConstraint(by_checkpoint, ConstraintBasis.CHECKPOINT, consumed.evidence, floor)


def _bound_first_unconsumed(
    position: int, active: OffsetHistory, passive: OffsetHistory, log: LogRange
) -> int:
    """Return a passive offset at or before which the source's first unconsumed record lies."""
    # After a recopy, a record behind the position may have been consumed as an earlier copy.
    unconsumed = None if active.has_recopies else active.ceiling_dst(position)
    copy = passive.ceiling(unconsumed.src_offset, log) if unconsumed else None
    return copy.dst_offset if copy else log.end
