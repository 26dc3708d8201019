"""A week's findings: how soon each was named, how soon somebody acted, and for how long it held."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.acknowledged import ACKNOWLEDGE
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.standings import Row
from fleetgauge_pipelines.slo.weeks import WeekSpan

#: Of `mitigation.case.Outcome`, which brings a Kafka client along: these changed nothing.
_NO_ACT = frozenset({"refused", "advised"})
_UNDONE, _DONE = "undone", "done"


@dataclass(frozen=True, slots=True)
class Incident:
    """A finding that was named in the week.

    ``detected_s`` is from its first sign to its name, None where it was named at once; ``acted_s`` from there
    to the first thing done to that broker; ``lasted_s`` is None of what still held when the week closed.
    """

    at: datetime
    alert_id: str
    cluster_id: str
    broker_id: int | None
    kind: str
    detected_s: float | None
    acted_s: float | None
    lasted_s: float | None


@dataclass(frozen=True, slots=True)
class Act:
    """What was done to a broker, or a cluster, or refused or only advised; ``words`` say why."""

    at: datetime
    kind: str
    cluster_id: str
    broker_id: int | None
    author: str
    outcome: str | None
    ended: datetime | None
    reason: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """The median and the longest of so many."""

    median_s: float
    longest_s: float
    of: int


def incidents(events: Sequence[HealthEvent], acts: Sequence[Act], week: WeekSpan) -> tuple[Incident, ...]:
    """In time's order, as they stood when the week closed."""
    until = week.closes_at
    named = (one for one in alerts([event for event in events if event.at < until]) if one.named)
    found = []
    for alert in named:
        if not week.start <= alert.opened < week.end:
            continue
        own = [
            act.at
            for act in acts
            if act.kind != ACKNOWLEDGE
            and act.outcome not in _NO_ACT
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
            )
        )
    return tuple(sorted(found, key=lambda one: (one.at, one.alert_id)))


def acts(rows: Iterable[Row], week: WeekSpan) -> tuple[Act, ...]:
    """Those that began in the week, as they stood when it closed."""
    begun = [row for row in rows if week.start <= row["starts"] < week.end]
    begun.sort(key=lambda row: (row["starts"], row["action_id"]))
    return tuple(_act(row, week.closes_at) for row in begun)


def times(known: Iterable[float | None]) -> Times | None:
    """Of those that are known; None where none is."""
    held = [one for one in known if one is not None]
    return Times(median(held), max(held), len(held)) if held else None


def _act(row: Row, until: datetime) -> Act:
    detail = _detail(row["detail"])
    outcome, words, ended = detail.get("outcome"), detail.get("words"), row["ends"]
    if ended is not None and ended >= until:
        ended, outcome = None, _DONE if outcome == _UNDONE else outcome
    return Act(
        row["starts"],
        row["kind"],
        row["cluster_id"],
        row["broker_id"],
        row["author"] or "",
        None if outcome is None else str(outcome),
        ended,
        row["reason"] or "",
        tuple(map(str, words)) if isinstance(words, list) else (),
    )


def _detail(text: str | None) -> dict[str, object]:
    """Of what `mitigate` did a JSON object; others may have written anything."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
