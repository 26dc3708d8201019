"""Where a group goes on by the timestamp of what it consumed last (Confluent Replicator's way), where no
checkpoint is known.

A broker answers a timestamp with the first offset that has it or a later one. Of a mirror with one source
that keeps order and timestamps, this lies at or before the record that was consumed last, as that one has
the timestamp itself; so nothing is passed over, be timestamps out of order as they may. How much is read
again nobody can say: one old record with a timestamp in the future stands for all after it.

Of merged topics it holds for each source by itself, of the records that it brought, and not of all
together: what one source brings late and young may lie before what another brought early. So a timestamp is
kept for each, and the earliest answer is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_operations.recovery.offsets.checkpoint import Log


class TimestampType(StrEnum):
    """Whose clock a topic's timestamps are of, as Kafka calls it (message.timestamp.type)."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Flag(StrEnum):
    """What whoever acts on an answer must know, by the name that scripts see."""

    APPEND_TIME = "append_time"
    """The destination has times of its own. Later ones only cost more reading; but a producer whose clock
    was ahead of the destination's has records passed over, and from the timestamp alone nobody can tell."""
    FUTURE = "future"
    """A record consumed last has a timestamp in the future."""
    FAR_BEFORE = "far_before"
    """Far before what checkpoints say: some old record has a timestamp in the future."""
    UNKNOWN_ORIGIN = "unknown_origin"
    """Nothing is known of a source's last record, so that all is read again."""


@dataclass(frozen=True, slots=True)
class Last:
    """Of one source's records, the one that the group consumed last."""

    timestamp_ms: int
    found: int | None
    """The destination's first offset with that timestamp or a later one; None if it has none."""
    rank: int = 0
    """How many records with the very same timestamp come before it at the source."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The log to go on in. ``now_ms``: when it was asked."""

    log: Log
    now_ms: int
    timestamps: TimestampType = TimestampType.CREATE_TIME
    same_order: bool = False
    """Verified: of one source only, and equal timestamps in the source's order without a gap."""


@dataclass(frozen=True, slots=True)
class ByTimestamp:
    """Where to go on in the destination."""

    resume: int
    flags: frozenset[Flag]

    @property
    def safe(self) -> bool:
        """Whether it is proved that no record is passed over that is not consumed."""
        return Flag.APPEND_TIME not in self.flags


def by_timestamp(
    last: Mapping[str, Last | None],
    destination: Destination,
    by_checkpoints: int | None = None,
    far: int = 10_000,
) -> ByTimestamp:
    """``last``: by source, None where it is not known; ``by_checkpoints``: what those say, to compare with.

    More than ``far`` offsets before it is far. Of a source of which nothing has been consumed nothing is
    known either.
    """
    known = {source: one for source, one in last.items() if one is not None}
    if not last or len(known) < len(last):
        resume = destination.log.start
    else:
        resume = min(_of(one, destination, alone=len(last) == 1) for one in known.values())
    is_far = by_checkpoints is not None and by_checkpoints - resume > far
    appends = destination.timestamps is TimestampType.LOG_APPEND_TIME
    raised = {
        Flag.APPEND_TIME: appends,
        Flag.FUTURE: any(one.timestamp_ms > destination.now_ms for one in known.values()),
        Flag.FAR_BEFORE: is_far,
        Flag.UNKNOWN_ORIGIN: not last or len(known) < len(last),
    }
    return ByTimestamp(resume, frozenset(flag for flag, up in raised.items() if up))


def _of(last: Last, destination: Destination, *, alone: bool) -> int:
    if last.found is None:
        return destination.log.end
    exact = alone and destination.same_order and destination.timestamps is TimestampType.CREATE_TIME
    return destination.log.clamped(last.found + last.rank if exact else last.found)
