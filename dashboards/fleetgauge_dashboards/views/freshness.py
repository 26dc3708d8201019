"""Assess how old the data is and how much of the expected data is present."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.recency import Recency
from fleetgauge_dashboards.units import format_duration

#: Records arrive within 70 s: the last probe's deadline, then a batch every 30 s.
STALE_AFTER = timedelta(minutes=3)
#: A lake from which no more data is expected counts as ended after this time.
ENDED_AFTER = timedelta(hours=24)


class DataAge(StrEnum):
    """How recent the newest minute is: no data, fresh, stale, or a lake that has ended."""

    NONE = "none"
    FRESH = "fresh"
    STALE = "stale"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Freshness:
    """The data's age, and its coverage in the hour up to its end.

    ``measured`` and ``expected`` count broker-minutes. ``silent_for`` has the age of each cluster of a live
    lake whose newest minute is stale; ``measured_clusters`` were measured in the newest days, or have ended.
    """

    until: datetime | None
    age: timedelta | None
    state: DataAge
    measured: int
    expected: int
    silent_for: Mapping[str, timedelta]
    measured_clusters: frozenset[str]

    @property
    def coverage(self) -> float | None:
        """Return measured over expected broker-minutes; None where none was expected."""
        return self.measured / self.expected if self.expected else None

    def describe_silence(self, cluster_id: str) -> str | None:
        """Return for how long a cluster of a live lake has sent no data, as text; None if it sends data."""
        if self.state in (DataAge.NONE, DataAge.ENDED):
            return None
        if cluster_id not in self.measured_clusters:
            return "more than a day"
        behind = self.silent_for.get(cluster_id)
        return None if behind is None else format_duration(behind)


NO_DATA = Freshness(None, None, DataAge.NONE, 0, 0, {}, frozenset())


def assess_freshness(
    recency: Recency, now: datetime, *, awaited: bool = False, ended: Set[str] = frozenset()
) -> Freshness:
    """Assess the freshness of the newest minutes.

    ``awaited`` says that more data is expected, however long it has been missing; ``ended`` are the clusters
    of which none is expected any more.
    """
    if recency.until is None:
        return NO_DATA
    age = max(now - recency.until, timedelta(0))
    state = classify_age(age, awaited=awaited)
    ages = {
        cluster: now - (minute + MINUTE) for cluster, minute in recency.newest.items() if cluster not in ended
    }
    silent_for = (
        {}
        if state is DataAge.ENDED
        else {cluster: cluster_age for cluster, cluster_age in ages.items() if cluster_age > STALE_AFTER}
    )
    expected_of_silent = sum(
        expected for cluster, expected in recency.expected_of_silent.items() if cluster not in ended
    )
    measured_clusters = frozenset(recency.newest) | ended
    return Freshness(
        recency.until,
        age,
        state,
        recency.measured,
        recency.expected + expected_of_silent,
        silent_for,
        measured_clusters,
    )


def classify_age(age: timedelta, *, awaited: bool = False) -> DataAge:
    """Return what an age means; awaited data is stale however old it is, and never ended."""
    if age <= STALE_AFTER:
        return DataAge.FRESH
    return DataAge.STALE if awaited or age <= ENDED_AFTER else DataAge.ENDED
