"""Where a group goes on in another region, whose topic merges the same sources in another order.

Motivation: MirrorMaker 2 translates from a source to its copy. Two aggregates have no offset in common;
what they share is the sources (Uber, "Disaster Recovery for Multi-Region Kafka").

Approach: for each source, what the active aggregate's position says is consumed of it; then where, in the
passive aggregate, the first record after that can lie at the earliest. The smallest over all sources is
where to go on: one offset a partition cannot do better. The rules differ in what a checkpoint is taken to
say:

- ``uber``, as published: go on at the latest checkpoint that lies at or before the latest one consumed.
- ``plus_one``: behind it, if the latter's record has really been consumed, which is so only before the
  position.
- ``watermark``: a checkpoint (x, y) is two watermarks, (x, y) and (x + 1, y + 1); what an idle source has
  are more of them. Up to the latest watermark at or before the position all is consumed, and nothing after
  that lies before the passive's latest.

What is proved of the last holds for the others, which go on no later: no record that is not consumed is
passed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Log
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.offsets.replication_runs import Consumed


class Rule(StrEnum):
    """By the name that scripts see; each goes on no earlier than the one before it."""

    UBER = "uber"
    PLUS_ONE = "plus_one"
    WATERMARK = "watermark"


class Why(StrEnum):
    """What a source's constraint rests on."""

    CHECKPOINT = "checkpoint"
    WATERMARK = "watermark"
    NOT_IN_ACTIVE = "not_in_active"
    """Nothing is known at or before the position: all of the source counts as not consumed."""
    NOT_IN_PASSIVE = "not_in_passive"
    """Nothing is known at or before what is consumed: it may lie anywhere."""
    MADE_ANEW = "made_anew"
    """The two aggregates tell of two topics that had the same name at the source."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Of one source. ``resume``: before it lies nothing of the source that is not consumed; None: nobody
    knows."""

    resume: int | None
    why: Why
    active: Checkpoint | None = None
    """From which it follows what is consumed."""
    passive: Checkpoint | None = None
    """From which it follows where the rest lies."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Where to go on in the passive aggregate."""

    resume: int
    rule: Rule
    per_source: Mapping[str, Constraint]
    possible_loss: bool
    """What is not consumed may lie before the passive's log start, where nobody can read it any more."""
    early_at_most: int | None
    """How many offsets before the first record that is not consumed; None if unbounded."""

    @property
    def unbounded(self) -> bool:
        """Some source has no usable checkpoint, so that all of the log is read again."""
        return self.early_at_most is None


def mapped(
    position: int,
    active: Mapping[str, History],
    passive: Mapping[str, History],
    log: Log,
    rule: Rule = Rule.WATERMARK,
) -> Answer:
    """``position``: the offset that the group reads next in the active aggregate; ``log``: the passive's.

    Histories by source, of one partition of the merged topic. Without any source nothing is known.
    """
    sources = sorted({*active, *passive})
    found = {one: _constraint(position, active.get(one), passive.get(one), log, rule) for one in sources}
    known = [one.resume for one in found.values() if one.resume is not None]
    if not known or len(known) < len(found):
        return Answer(log.start, rule, found, possible_loss=False, early_at_most=None)
    earliest = min(known)
    resume = log.clamped(earliest)
    latest = min(_first_left_at_most(position, active[one], passive[one], log) for one in sources)
    return Answer(resume, rule, found, earliest < log.start, max(0, latest - resume))


def best(position: int, active: Mapping[str, History], passive: Mapping[str, History], log: Log) -> Answer:
    """The latest answer, by the simplest rule that gives it."""
    answers = [mapped(position, active, passive, log, rule) for rule in Rule]
    return max(answers, key=lambda one: (not one.unbounded, one.resume))


def _constraint(
    position: int, active: History | None, passive: History | None, log: Log, rule: Rule
) -> Constraint:
    seen = None if active is None else _consumed(position, active, rule)
    if active is None or seen is None:
        return Constraint(None, Why.NOT_IN_ACTIVE)
    if passive is None:
        return Constraint(None, Why.NOT_IN_PASSIVE, seen.by)
    if active.ids and passive.ids and active.ids.source != passive.ids.source:
        return Constraint(None, Why.MADE_ANEW, seen.by)
    if rule is Rule.WATERMARK:
        return _by_watermarks(seen, passive, log)
    at = passive.floor(seen.by.src_offset, log)
    if at is None:
        return Constraint(None, Why.NOT_IN_PASSIVE, seen.by)
    behind = rule is Rule.PLUS_ONE and at.src_offset < seen.next_src
    return Constraint(at.dst_offset + behind, Why.CHECKPOINT, seen.by, at)


def _consumed(position: int, active: History, rule: Rule) -> Consumed | None:
    by_checkpoint = active.consumed(position)
    before = active.watermark_before(position) if rule is Rule.WATERMARK else None
    by_watermark = Consumed(before.src_offset, before) if before else None
    known = [one for one in (by_checkpoint, by_watermark) if one]
    return max(known, key=lambda one: one.next_src, default=None)


def _by_watermarks(seen: Consumed, passive: History, log: Log) -> Constraint:
    at = passive.floor(seen.next_src, log)
    after = passive.watermark_after(seen.next_src, log)
    by_checkpoint = at.dst_offset + (at.src_offset < seen.next_src) if at else -1
    if after and after.dst_offset > by_checkpoint:
        return Constraint(after.dst_offset, Why.WATERMARK, seen.by, after)
    if at is None:
        return Constraint(None, Why.NOT_IN_PASSIVE, seen.by)
    return Constraint(by_checkpoint, Why.CHECKPOINT, seen.by, at)


def _first_left_at_most(position: int, active: History, passive: History, log: Log) -> int:
    """Before or at which offset of the passive log the first record of a source lies that is not consumed."""
    # Where it was copied again, a record after the position may have been consumed before it.
    left = None if active.copied_again else active.next_from(position)
    at = passive.ceiling(left.src_offset, log) if left else None
    return at.dst_offset if at else log.end
