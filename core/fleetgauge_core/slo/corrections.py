"""Corrections: minutes that a person excludes from the service levels, with a recorded reason.

Excluded minutes leave measured and expected minutes alike; coverage still counts them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

#: Period of a recurring correction; each occurrence starts at the same local time.
RECURRENCES = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}

#: The (segment, segment value) pairs of one cluster.
ClusterSegments = Set[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Correction:
    """An exclusion of the minutes that start in [starts, ends), for a broker, cluster or fleet segment."""

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

    def applies_to(self, cluster_id: str, segments: ClusterSegments) -> bool:
        """Return whether the correction's scope includes the cluster or one of its brokers."""
        if self.scope == "segment":
            return (self.segment, self.segment_value) in segments
        return self.cluster_id == cluster_id


def parse_correction(row: Mapping[str, Any]) -> Correction:
    """Return the correction of a row of ops/corrections, of which columns that are missing are None."""
    values: dict[str, Any] = {column.name: row.get(column.name) for column in fields(Correction)}
    return Correction(**values)


@dataclass(frozen=True, slots=True)
class ExcludedRange:
    """A cluster's minutes that a correction excludes; with a broker, only that broker's minutes."""

    correction_id: str
    cluster_id: str
    broker_id: int | None
    starts: datetime
    ends: datetime


def find_occurrences(
    correction: Correction, zone: str, lo: datetime, hi: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the correction's (start, end) pairs that overlap [lo, hi), in ascending order."""
    if correction.recurs is None:
        if correction.starts < hi and correction.ends > lo:
            yield correction.starts, correction.ends
        return
    period = RECURRENCES[correction.recurs]
    # A clock change moves an occurrence by less than a day, so starting one period early misses none.
    n = max(0, (lo - correction.ends) // period - 1)
    while True:
        starts, ends = (
            _add_local_time(at, n * period, ZoneInfo(zone)) for at in (correction.starts, correction.ends)
        )
        if starts >= hi or (correction.recurs_until is not None and starts >= correction.recurs_until):
            return
        if ends > lo:
            yield starts, ends
        n += 1


def _add_local_time(at: datetime, days: timedelta, zone: ZoneInfo) -> datetime:
    """Return the same local time ``days`` later; ``at`` itself may lie in an hour that occurs twice."""
    return (at.astimezone(zone) + days).astimezone(UTC) if days else at


def expand_corrections(
    corrections: Iterable[Correction],
    clusters: Mapping[str, ClusterSegments],
    zone: str,
    lo: datetime,
    hi: datetime,
) -> list[ExcludedRange]:
    """Return what the corrections exclude of each cluster, for occurrences that overlap [lo, hi)."""
    return [
        ExcludedRange(correction.correction_id, cluster_id, correction.broker_id, starts, ends)
        for correction in corrections
        for starts, ends in find_occurrences(correction, zone, lo, hi)
        for cluster_id, segments in clusters.items()
        if correction.applies_to(cluster_id, segments)
    ]


def join_correction_ids(correction_ids: Sequence[str]) -> str:
    """Return the distinct ids, sorted and separated by commas, as gold/cluster_weeks stores them."""
    return ",".join(sorted(set(correction_ids)))
