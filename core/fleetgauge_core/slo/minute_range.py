"""How far a cluster is known, and which minutes a batch of records makes new.

A record changes its own minute and, because minutes without a record expect
what was last known, every such minute after it, until the next record. So what
must be computed again is one stretch: from the first touched minute (or the gap
before it) to the next minute that has a record, or to the watermark.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Horizon:
    """What silver holds of a cluster: its first and last minute, and the first that had a record.

    ``expected``: the brokers of the last minute, where somebody has looked.
    """

    begin: datetime
    watermark: datetime
    first_record: datetime
    expected: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Minutes lo to hi (inclusive) of a cluster are to be computed.

    Before the first record of the stretch, the brokers expected at ``carried_from``
    hold, or those that the records of minute ``first_record`` name.
    """

    cluster_id: str
    lo: datetime
    hi: datetime
    carried_from: datetime | None = None
    first_record: datetime | None = None


def stretch(
    cluster_id: str,
    touched_lo: datetime,
    touched_hi: datetime,
    known: Horizon | None,
    since: datetime | None,
    until: datetime | None,
    next_record: datetime | None = None,
) -> Stretch | None:
    """What a batch with records in minutes touched_lo..touched_hi makes new; None past ``until``.

    ``next_record`` is the first minute after touched_hi that has a record, where it is known.
    """
    hi = touched_hi if until is None else min(touched_hi, _last_before(until))
    if (known is None and touched_lo > hi) or (known is not None and known.watermark >= hi < touched_lo):
        return None
    if known is None:
        lo, carried_from = touched_lo, None
    elif touched_lo > known.watermark:
        lo, carried_from = known.watermark + _MINUTE, known.watermark
    else:
        lo, hi, carried_from = touched_lo, max(hi, _changed_until(known, next_record)), None
    if until is not None:
        hi = min(hi, _last_before(until))
    if since is not None and (known is None or touched_lo < known.first_record):
        return Stretch(cluster_id, min(lo, first_minute(since)), hi, first_record=touched_lo)
    return Stretch(cluster_id, lo, hi, carried_from)


def _changed_until(known: Horizon, next_record: datetime | None) -> datetime:
    """The last minute that late records change; those before the first that counted may now count too."""
    if next_record is None:
        return known.watermark
    return min(known.watermark, max(known.begin, next_record - _MINUTE))


def pieces(stretches: Sequence[Stretch], at_most: timedelta) -> Iterator[list[Stretch]]:
    """The stretches cut into spans that fit into memory, oldest first; spans without any are left out.

    A piece that begins inside its stretch has neither ``carried_from`` nor
    ``first_record``: it carries on from the piece before.
    """
    if not stretches:
        return
    starts, last = min(one.lo for one in stretches), max(one.hi for one in stretches)
    while starts <= last:
        ends = starts + at_most - _MINUTE
        inside = [_cut(one, starts, ends) for one in stretches if one.lo <= ends and one.hi >= starts]
        if inside:
            yield inside
        starts += at_most


def united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same minutes of each cluster without overlaps."""
    found: list[Stretch] = []
    for one in sorted(stretches, key=lambda each: (each.cluster_id, each.lo)):
        last = found[-1] if found and found[-1].cluster_id == one.cluster_id else None
        if last and one.lo <= last.hi + _MINUTE:
            found[-1] = replace(last, hi=max(last.hi, one.hi))
        else:
            found.append(Stretch(one.cluster_id, one.lo, one.hi))
    return found


def _cut(one: Stretch, starts: datetime, ends: datetime) -> Stretch:
    hi = min(one.hi, ends)
    return replace(one, hi=hi) if one.lo >= starts else Stretch(one.cluster_id, starts, hi)


def first_minute(since: datetime) -> datetime:
    """The first whole minute from an instant on."""
    floor = since.replace(second=0, microsecond=0)
    return floor if floor == since else floor + _MINUTE


def _last_before(until: datetime) -> datetime:
    return first_minute(until) - _MINUTE
