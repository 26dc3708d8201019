"""How old the data is and how much of what was expected is there: read before any other number."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.units import duration

MINUTE = timedelta(minutes=1)
#: Records take up to 70 s on their way (the last probe's deadline, a batch every 30 s).
STALE_AFTER = timedelta(minutes=3)
#: A lake that ended longer ago is looked at as history, not as a pipeline that is late.
ENDED_AFTER = timedelta(hours=24)
LOOK_BACK = timedelta(minutes=60)


class Age(StrEnum):
    """What the age of the newest minute means."""

    NONE = "none"
    FRESH = "fresh"
    STALE = "stale"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Freshness:
    """The data's age, and broker-minutes measured of those expected in the hour up to its end.

    ``silent`` are the clusters of a live lake whose own newest minute is stale,
    ``heard`` all that were measured in the newest days.
    """

    until: datetime | None
    age: timedelta | None
    state: Age
    measured: int
    expected: int
    silent: Mapping[str, timedelta]
    heard: frozenset[str]

    @property
    def coverage(self) -> float | None:
        return self.measured / self.expected if self.expected else None

    def silence(self, cluster_id: str) -> str | None:
        """For how long a cluster of a live lake has said nothing; None if it speaks."""
        if self.state in (Age.NONE, Age.ENDED):
            return None
        if cluster_id not in self.heard:
            return "more than a day"
        behind = self.silent.get(cluster_id)
        return None if behind is None else duration(behind)


NO_DATA = Freshness(None, None, Age.NONE, 0, 0, {}, frozenset())


def freshness(recent: pa.Table, newest: dict[str, datetime], now: datetime) -> Freshness:
    """From the recent cluster-minutes and each cluster's newest measured one."""
    if not newest:
        return NO_DATA
    until = max(newest.values()) + MINUTE
    age = max(now - until, timedelta(0))
    state = _state(age)
    measured, expected = _coverage(recent, until)
    ages = {cluster: now - (minute + MINUTE) for cluster, minute in newest.items()}
    late = {} if state is Age.ENDED else {cluster: own for cluster, own in ages.items() if own > STALE_AFTER}
    return Freshness(until, age, state, measured, expected, late, frozenset(newest))


def _state(age: timedelta) -> Age:
    if age <= STALE_AFTER:
        return Age.FRESH
    return Age.STALE if age <= ENDED_AFTER else Age.ENDED


def _coverage(recent: pa.Table, until: datetime) -> tuple[int, int]:
    """A minute without a row was expected as its cluster's last row says: silence is not health."""
    per_cluster: dict[str, list[tuple[datetime, int, int]]] = {}
    since = until - LOOK_BACK
    for row in recent.filter(pc.greater_equal(recent["minute"], pa.scalar(since))).to_pylist():
        at = row["minute"].astimezone(UTC)
        if at < until:
            counts = (at, row["brokers_expected"] or 0, row["brokers_measured"] or 0)
            per_cluster.setdefault(row["cluster_id"], []).append(counts)
    measured_sum = expected_sum = 0
    for rows in per_cluster.values():
        first, last = min(rows), max(rows)
        after_last = int((until - MINUTE - last[0]) / MINUTE)
        inside = int((last[0] - first[0]) / MINUTE) + 1 - len(rows)
        measured_sum += sum(measured for _, _, measured in rows)
        expected_sum += sum(expected for _, expected, _ in rows) + last[1] * (after_last + inside)
    return measured_sum, expected_sum
