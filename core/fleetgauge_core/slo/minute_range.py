"""The minutes that silver holds of a cluster, and the minutes that a batch of records affects.

A minute without a record inherits the expected brokers of the latest minute with one. So a record affects its
own minute and every later minute up to the next record. The minutes to recompute are one contiguous range:
from the first touched minute (or from the gap before it) to the minute before the next record, or to the last
minute of the cluster.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ClusterMinuteBounds:
    """The first and the last minute that silver holds of a cluster, and the first minute with a record.

    ``expected_brokers``: the brokers expected in the last minute; None if not read yet.
    """

    first_minute: datetime
    last_minute: datetime
    first_record_minute: datetime
    expected_brokers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class MinuteRange:
    """A cluster's minutes from ``first`` to ``last`` (both inclusive) that are to be computed.

    Minutes before the first record of the range expect the brokers of minute ``expected_from``, or those
    that the records of minute ``first_record_minute`` list.
    """

    cluster_id: str
    first: datetime
    last: datetime
    expected_from: datetime | None = None
    first_record_minute: datetime | None = None


def find_affected_range(
    cluster_id: str,
    first_touched: datetime,
    last_touched: datetime,
    bounds: ClusterMinuteBounds | None,
    since: datetime | None,
    until: datetime | None,
    next_record: datetime | None = None,
) -> MinuteRange | None:
    """Return the minutes that a batch affects; None if they are all at or after ``until``.

    ``first_touched`` and ``last_touched``: the minutes of the batch's earliest and latest record. ``bounds``:
    what silver holds of the cluster, None for a new one. ``since`` and ``until``: the cluster's configured
    period. ``next_record``: the first later minute that has a record, None if unknown.
    """
    last = last_touched if until is None else min(last_touched, _last_minute_before(until))
    if bounds is None and first_touched > last:
        return None
    if bounds is not None and bounds.last_minute >= last < first_touched:
        return None
    expected_from = None
    if bounds is None:
        first = first_touched
    elif first_touched > bounds.last_minute:
        first, expected_from = bounds.last_minute + _MINUTE, bounds.last_minute
    else:
        first, last = first_touched, max(last, _last_affected_by_late_records(bounds, next_record))
    if until is not None:
        last = min(last, _last_minute_before(until))
    if since is not None and (bounds is None or first_touched < bounds.first_record_minute):
        first = min(first, ceil_to_minute(since))
        return MinuteRange(cluster_id, first, last, first_record_minute=first_touched)
    return MinuteRange(cluster_id, first, last, expected_from)


def _last_affected_by_late_records(bounds: ClusterMinuteBounds, next_record: datetime | None) -> datetime:
    """Return the last minute that late records affect.

    Minutes before the first one in silver are included: a late record may make them count.
    """
    if next_record is None:
        return bounds.last_minute
    return min(bounds.last_minute, max(bounds.first_minute, next_record - _MINUTE))


def split_ranges(ranges: Sequence[MinuteRange], at_most: timedelta) -> Iterator[list[MinuteRange]]:
    """Yield the ranges cut into periods of ``at_most``, oldest first, without empty periods.

    A part that does not begin its range has neither ``expected_from`` nor ``first_record_minute``: its
    expected brokers come from the part before it.
    """
    if not ranges:
        return
    starts, last = min(part.first for part in ranges), max(part.last for part in ranges)
    while starts <= last:
        ends = starts + at_most - _MINUTE
        parts = [_clip(part, starts, ends) for part in ranges if part.first <= ends and part.last >= starts]
        if parts:
            yield parts
        starts += at_most


def merge_ranges(ranges: Iterable[MinuteRange]) -> list[MinuteRange]:
    """Return each cluster's minutes without overlaps, by cluster and ascending."""
    merged: list[MinuteRange] = []
    for addition in sorted(ranges, key=lambda minutes: (minutes.cluster_id, minutes.first)):
        before = merged[-1] if merged and merged[-1].cluster_id == addition.cluster_id else None
        if before and addition.first <= before.last + _MINUTE:
            merged[-1] = replace(before, last=max(before.last, addition.last))
        else:
            merged.append(MinuteRange(addition.cluster_id, addition.first, addition.last))
    return merged


def _clip(minutes: MinuteRange, starts: datetime, ends: datetime) -> MinuteRange:
    last = min(minutes.last, ends)
    if minutes.first >= starts:
        return replace(minutes, last=last)
    return MinuteRange(minutes.cluster_id, starts, last)


def ceil_to_minute(instant: datetime) -> datetime:
    """Return the start of the first whole minute at or after an instant."""
    floor = instant.replace(second=0, microsecond=0)
    return floor if floor == instant else floor + _MINUTE


def _last_minute_before(until: datetime) -> datetime:
    return ceil_to_minute(until) - _MINUTE
