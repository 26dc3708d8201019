"""Corrections: minutes that a person took out of the levels, with the reason on record.

They leave measured and expected alike; coverage stays what was measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

#: What recurs does so at the same local time.
RECURRENCES = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}

#: Segment and value, each that one cluster is in.
Segments = Set[tuple[str, str]]
#: Start (inclusive) and end (exclusive) in UTC.
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Correction:
    """Minutes that start in [starts, ends), of a broker, a cluster or a segment of the fleet."""

    correction_id: str
    scope: str
    starts: datetime
    ends: datetime
    cluster_id: str | None = None
    broker_id: int | None = None
    segment: str | None = None
    segment_value: str | None = None
    recurs: str | None = None
    recurs_until: datetime | None = None

    def covers(self, cluster_id: str, segments: Segments) -> bool:
        """Whether it has to do with the cluster at all."""
        if self.scope == "segment":
            return (self.segment, self.segment_value) in segments
        return self.cluster_id == cluster_id


@dataclass(frozen=True, slots=True)
class Excluded:
    """Minutes of a cluster that do not count; with a broker, that broker's alone."""

    correction_id: str
    cluster_id: str
    broker_id: int | None
    starts: datetime
    ends: datetime


def occurrences(
    one: Correction, zone: str, lo: datetime, hi: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Its spans that meet [lo, hi), in order."""
    if one.recurs is None:
        if one.starts < hi and one.ends > lo:
            yield one.starts, one.ends
        return
    step = RECURRENCES[one.recurs]
    # A clock change moves an occurrence by less than a day; begin early enough to miss none.
    n = max(0, (lo - one.ends) // step - 1)
    while True:
        starts, ends = (_later(at, n * step, ZoneInfo(zone)) for at in (one.starts, one.ends))
        if starts >= hi or (one.recurs_until is not None and starts >= one.recurs_until):
            return
        if ends > lo:
            yield starts, ends
        n += 1


def _later(at: datetime, by: timedelta, zone: ZoneInfo) -> datetime:
    """The same local time days later; the moment itself may lie in an hour that comes twice."""
    return (at.astimezone(zone) + by).astimezone(UTC) if by else at


def excluded(
    corrections: Iterable[Correction],
    clusters: Mapping[str, Segments],
    zone: str,
    lo: datetime,
    hi: datetime,
) -> list[Excluded]:
    """What the corrections take out of [lo, hi) of each cluster."""
    return [
        Excluded(one.correction_id, cluster_id, one.broker_id, starts, ends)
        for one in corrections
        for starts, ends in occurrences(one, zone, lo, hi)
        for cluster_id, segments in clusters.items()
        if one.covers(cluster_id, segments)
    ]


def ids(found: Sequence[str]) -> str:
    """As gold/cluster_weeks keeps them."""
    return ",".join(sorted(set(found)))
