"""How old the data is and how much of what was expected is there: read before any other number."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.recency import Recency
from fleetgauge_dashboards.units import duration

#: Records take up to 70 s on their way (the last probe's deadline, a batch every 30 s).
STALE_AFTER = timedelta(minutes=3)
#: A lake for whose data nobody waits is history when it ended longer ago.
ENDED_AFTER = timedelta(hours=24)


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
    ``heard`` all that were measured in the newest days, or need not be.
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


def freshness(
    known: Recency, now: datetime, *, awaited: bool = False, over: Set[str] = frozenset()
) -> Freshness:
    """Of what the newest minutes hold.

    ``awaited``: data should come, however long it has not; ``over``: clusters of which none should any more.
    """
    if known.until is None:
        return NO_DATA
    age = max(now - known.until, timedelta(0))
    state = state_of(age, awaited=awaited)
    ages = {
        cluster: now - (minute + MINUTE) for cluster, minute in known.newest.items() if cluster not in over
    }
    late = {} if state is Age.ENDED else {cluster: own for cluster, own in ages.items() if own > STALE_AFTER}
    unheard = sum(expected for cluster, expected in known.unheard.items() if cluster not in over)
    heard = frozenset(known.newest) | over
    return Freshness(known.until, age, state, known.measured, known.expected + unheard, late, heard)


def state_of(age: timedelta, *, awaited: bool = False) -> Age:
    if age <= STALE_AFTER:
        return Age.FRESH
    return Age.STALE if awaited or age <= ENDED_AFTER else Age.ENDED
