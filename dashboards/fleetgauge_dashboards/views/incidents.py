"""A week's findings: how soon each was named, how soon somebody acted, and for how long it held."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.actions import Act
from fleetgauge_dashboards.views.alerts import Alert, alerts


@dataclass(frozen=True, slots=True)
class Incident:
    """A finding that was named in the week.

    ``detected_s`` is from its first sign to its name, None where it was named at once; ``acted_s`` from there
    to the first thing done to that broker; ``lasted_s`` is None of what still held when the week closed.
    ``saved_min`` are the whole minutes from there to its end in which its cluster kept its latency objective
    although the broker was still ill, where before it did not keep it; None where nothing was done.
    """

    at: datetime
    alert_id: str
    cluster_id: str
    broker_id: int | None
    kind: str
    detected_s: float | None
    acted_s: float | None
    lasted_s: float | None
    saved_min: int | None


@dataclass(frozen=True, slots=True)
class Durations:
    """The median and the longest of so many."""

    median_s: float
    longest_s: float
    of: int


def incidents(
    events: Sequence[HealthEvent],
    acts: Sequence[Act],
    bad_minutes: Mapping[str, Set[datetime]],
    week: WeekSpan,
) -> tuple[Incident, ...]:
    """In time's order, as they stood when the week closed. ``bad_minutes`` are the week's, by cluster."""
    until = week.closes_at
    named = (one for one in alerts([event for event in events if event.at < until]) if one.named)
    found = []
    for alert in named:
        if not week.start <= alert.opened < week.end:
            continue
        own = [
            act.at
            for act in acts
            if act.was_done
            and (act.cluster_id, act.broker_id) == (alert.cluster_id, alert.broker_id)
            and alert.opened <= act.at < (alert.cleared or until)
        ]
        found.append(
            Incident(
                alert.opened,
                alert.alert_id,
                alert.cluster_id,
                alert.broker_id,
                alert.kind,
                (alert.opened - alert.began).total_seconds() or None,
                (min(own) - alert.opened).total_seconds() if own else None,
                (alert.cleared - alert.opened).total_seconds() if alert.cleared else None,
                _saved(alert, min(own), bad_minutes.get(alert.cluster_id, frozenset())) if own else None,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.at, one.alert_id)))


def _saved(alert: Alert, acted: datetime, bad: Set[datetime]) -> int:
    if alert.cleared is None or not any(alert.began - MINUTE < minute <= acted for minute in bad):
        return 0
    first = acted.replace(second=0, microsecond=0) + MINUTE
    whole = max(0, (alert.cleared - first) // MINUTE)
    return sum(first + n * MINUTE not in bad for n in range(whole))


def times(known: Iterable[float | None]) -> Durations | None:
    """Of those that are known; None where none is."""
    held = [one for one in known if one is not None]
    return Durations(median(held), max(held), len(held)) if held else None
