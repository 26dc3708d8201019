"""List a week's findings: how soon each opened, how soon an action was taken, and how long it lasted."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.actions import RecordedAction
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts


@dataclass(frozen=True, slots=True)
class WeekIncident:
    """A finding that opened in the week; durations are in seconds.

    ``detected_s`` is from the first sign to the opening, None where both coincide; ``acted_s`` from the
    opening to the first action on that broker; ``lasted_s`` is None while the finding was open when the week
    closed. ``saved_min`` counts the whole minutes after the action in which the cluster met its latency
    objective although the finding was still open, and it did not meet it before; None without an action.
    ``removed`` is whether it ended because the cluster left the fleet file.
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
    removed: bool


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """The median and the longest of ``of`` durations."""

    median_s: float
    longest_s: float
    of: int


def list_incidents(
    events: Sequence[HealthEvent],
    actions: Sequence[RecordedAction],
    bad_minutes: Mapping[str, Set[datetime]],
    week: WeekSpan,
) -> tuple[WeekIncident, ...]:
    """Return the week's incidents in time order, as they stood when the week closed.

    ``bad_minutes`` are the week's, by cluster.
    """
    closes_at = week.closes_at
    opened_alerts = (
        alert
        for alert in fold_alerts([event for event in events if event.at < closes_at])
        if alert.opening_event
    )
    incidents = []
    for alert in opened_alerts:
        if not week.start <= alert.opened_at < week.end:
            continue
        action_times = [
            action.at
            for action in actions
            if action.has_effect
            and (action.cluster_id, action.broker_id) == (alert.cluster_id, alert.broker_id)
            and alert.opened_at <= action.at < (alert.cleared_at or closes_at)
        ]
        incidents.append(
            WeekIncident(
                alert.opened_at,
                alert.alert_id,
                alert.cluster_id,
                alert.broker_id,
                alert.kind,
                (alert.opened_at - alert.first_sign_at).total_seconds() or None,
                (min(action_times) - alert.opened_at).total_seconds() if action_times else None,
                (alert.cleared_at - alert.opened_at).total_seconds() if alert.cleared_at else None,
                _count_saved_minutes(alert, min(action_times), bad_minutes.get(alert.cluster_id, frozenset()))
                if action_times
                else None,
                alert.is_removed,
            )
        )
    return tuple(sorted(incidents, key=lambda incident: (incident.at, incident.alert_id)))


def _count_saved_minutes(alert: HealthAlert, acted_at: datetime, bad_minutes: Set[datetime]) -> int:
    if alert.cleared_at is None or not any(
        alert.first_sign_at - MINUTE < minute <= acted_at for minute in bad_minutes
    ):
        return 0
    first = acted_at.replace(second=0, microsecond=0) + MINUTE
    minutes = max(0, (alert.cleared_at - first) // MINUTE)
    return sum(first + n * MINUTE not in bad_minutes for n in range(minutes))


def summarize_durations(durations: Iterable[float | None]) -> DurationSummary | None:
    """Summarize the durations that are known; None where none is."""
    present = [duration for duration in durations if duration is not None]
    return DurationSummary(median(present), max(present), len(present)) if present else None
