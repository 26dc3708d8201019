"""Translate a position by the timestamp of the last consumed record, where no checkpoint is known.

This is Confluent Replicator's method. A broker answers a timestamp with the first offset that has it or a
later one (ListOffsets). If a mirror has one source and keeps order and timestamps, that offset lies at or
before the last consumed record, which has the timestamp itself; so no record is skipped, even if timestamps
are out of order. The number of records read again is not bounded: one old record with a timestamp in the
future stands for all records after it.

In a merged topic this holds for each source by itself, but not for all together: a late source may have
written a younger record before an earlier offset of another source. So one timestamp per source is needed,
and the lowest answer is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange


class TimestampType(StrEnum):
    """Which clock a topic's timestamps come from (Kafka's message.timestamp.type)."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class TimestampFlag(StrEnum):
    """A caveat of a translation by timestamp."""

    APPEND_TIME = "append_time"
    """The destination assigns its own timestamps (LogAppendTime). Later timestamps only cause more replay;
    but records are skipped if the producer's clock was ahead of the destination's, which the timestamp alone
    cannot show."""
    FUTURE = "future"
    """A last consumed record has a timestamp in the future."""
    FAR_BEFORE = "far_before"
    """The result lies far before the translation by checkpoints: an old record has a future timestamp."""
    UNKNOWN_ORIGIN = "unknown_origin"
    """The last consumed record of a source is unknown, so the whole log is read again."""


@dataclass(frozen=True, slots=True)
class LastConsumedRecord:
    """The last record of one source that a group consumed."""

    timestamp_ms: int
    destination_offset: int | None
    """First destination offset with that timestamp or a later one; None if there is none."""
    rank: int = 0
    """How many records with the same timestamp precede it in the source."""


@dataclass(frozen=True, slots=True)
class DestinationTopic:
    """The destination partition's log, read at ``now_ms``, and its kind of timestamps."""

    log: LogRange
    now_ms: int
    timestamps: TimestampType = TimestampType.CREATE_TIME
    same_order: bool = False
    """Verified: it has one source only, and keeps the order of equal timestamps without gaps."""


@dataclass(frozen=True, slots=True)
class TimestampTranslation:
    """The destination offset to read next, and its caveats."""

    resume: int
    flags: frozenset[TimestampFlag]

    @property
    def is_safe(self) -> bool:
        """Whether it is proven that no unconsumed record is skipped."""
        return TimestampFlag.APPEND_TIME not in self.flags


def translate_by_timestamp(
    last: Mapping[str, LastConsumedRecord | None],
    destination: DestinationTopic,
    by_checkpoints: int | None = None,
    far: int = 10_000,
) -> TimestampTranslation:
    """Translate a position by the last consumed record of each source.

    ``last`` is None for a source whose last consumed record is unknown, or of which nothing is consumed.
    ``by_checkpoints`` is the translation by checkpoints, to compare with: a result more than ``far`` offsets
    before it is flagged.
    """
    records = {source: record for source, record in last.items() if record is not None}
    if not last or len(records) < len(last):
        resume = destination.log.start
    else:
        resume = min(
            _translate_source(record, destination, is_only=len(last) == 1) for record in records.values()
        )
    is_far = by_checkpoints is not None and by_checkpoints - resume > far
    is_append_time = destination.timestamps is TimestampType.LOG_APPEND_TIME
    conditions = {
        TimestampFlag.APPEND_TIME: is_append_time,
        TimestampFlag.FUTURE: any(record.timestamp_ms > destination.now_ms for record in records.values()),
        TimestampFlag.FAR_BEFORE: is_far,
        TimestampFlag.UNKNOWN_ORIGIN: not last or len(records) < len(last),
    }
    return TimestampTranslation(resume, frozenset(flag for flag, is_set in conditions.items() if is_set))


def _translate_source(record: LastConsumedRecord, destination: DestinationTopic, *, is_only: bool) -> int:
    if record.destination_offset is None:
        return destination.log.end
    is_exact = is_only and destination.same_order and destination.timestamps is TimestampType.CREATE_TIME
    return destination.log.clamp(record.destination_offset + (record.rank if is_exact else 0))
