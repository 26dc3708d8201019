"""Fold state changes into alerts, which open at one time and clear at another or are still open."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.contract import HealthEvent, Leg
from fleetgauge_dashboards.links import (
    DEFAULT_DISPLAY,
    MAX_SPAN,
    ClusterView,
    DisplayOptions,
    Span,
)
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import NO_VALUE

HEALTHY = "HEALTHY"
SUSPECT = "SUSPECT"

#: The time that a link to an alert shows before its first sign and after its end.
LINK_LEAD = timedelta(minutes=15)
LINK_TAIL = timedelta(minutes=15)
#: The time after its opening that a link to an open alert shows.
OPEN_LINK_TAIL = timedelta(minutes=45)


@dataclass(frozen=True, slots=True)
class HealthAlert:
    """A finding from its first sign to its end; ``events`` are state changes in time order, never empty."""

    events: tuple[HealthEvent, ...]

    @property
    def alert_id(self) -> str:
        """Return the id of the first event."""
        return self.events[0].event_id

    @property
    def cluster_id(self) -> str:
        """Return the cluster's id."""
        return self.events[0].cluster_id

    @property
    def broker_id(self) -> int | None:
        """Return the broker's id; None for an alert of the cluster."""
        return self.events[0].broker_id

    @property
    def opening_event(self) -> HealthEvent | None:
        """Return the event that opened the finding; None while it is only suspected."""
        return next((event for event in self.events if event.to_state not in (HEALTHY, SUSPECT)), None)

    @property
    def kind(self) -> str:
        """Return the current kind of the finding, or its last one."""
        kinds = [event.kind for event in self.events if event.to_state not in (HEALTHY, SUSPECT)]
        return kinds[-1] if kinds else self.events[-1].kind

    @property
    def first_sign_at(self) -> datetime:
        """Return when the first sign was seen."""
        return self.events[0].at

    @property
    def opened_at(self) -> datetime:
        """Return when the finding opened, or was first suspected."""
        return self.opening_event.at if self.opening_event else self.first_sign_at

    @property
    def cleared_at(self) -> datetime | None:
        """Return when the finding cleared; None while it has not."""
        last = self.events[-1]
        return last.at if last.to_state == HEALTHY else None

    @property
    def is_removed(self) -> bool:
        """Return whether the finding cleared because its cluster left the fleet file: it may not be over."""
        return self.cleared_at is not None and _is_unwatched(self.events[-1].evidence)

    @property
    def is_open(self) -> bool:
        """Return whether the finding has opened and not cleared."""
        return self.cleared_at is None and self.opening_event is not None

    @property
    def is_suspected(self) -> bool:
        """Return whether the finding is suspected: not opened yet, and not cleared."""
        return self.cleared_at is None and self.opening_event is None

    @property
    def subject(self) -> str:
        """Return the broker or the cluster, for a person."""
        return self.cluster_id if self.broker_id is None else f"{self.cluster_id} broker {self.broker_id}"

    def duration(self, now: datetime) -> timedelta:
        """Return the time from the opening until it cleared, or until ``now``."""
        return (self.cleared_at or now) - self.opened_at

    def format_end(self, times: TimeFormat) -> str:
        """Return when the finding cleared, and whether that is because its cluster was removed."""
        if self.cleared_at is None:
            return NO_VALUE
        return times.format_instant(self.cleared_at) + (", cluster removed" if self.is_removed else "")

    def view(self, display: DisplayOptions = DEFAULT_DISPLAY) -> ClusterView:
        """Return the view of the cluster at that time, on the leader leg, which shows the broker at fault."""
        start = self.first_sign_at - LINK_LEAD
        end = self.opened_at + OPEN_LINK_TAIL if self.cleared_at is None else self.cleared_at + LINK_TAIL
        span = Span(start, min(end, start + MAX_SPAN))
        return ClusterView(self.cluster_id, shown=span, leg=Leg.LEADER, display=display)


def _is_unwatched(evidence: str) -> bool:
    try:
        document = json.loads(evidence)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("watched") is False


def fold_alerts(events: Sequence[HealthEvent]) -> tuple[HealthAlert, ...]:
    """Return the alerts, newest first; suspicions that cleared without opening are left out.

    An event belongs to the uncleared alert of its fingerprint, or else to the alert of its broker in the
    state that the event leaves, because a finding may change its kind.
    """
    uncleared: list[list[HealthEvent]] = []
    cleared: list[HealthAlert] = []
    for event in sorted(events, key=lambda event: event.at):
        alert_events = _find_events_of_alert(event, uncleared)
        if alert_events is None:
            if event.to_state == HEALTHY:
                continue  # Its opening was never recorded.
            alert_events = []
            uncleared.append(alert_events)
        alert_events.append(event)
        if event.to_state == HEALTHY:
            uncleared = [events for events in uncleared if events is not alert_events]
            cleared.append(HealthAlert(tuple(alert_events)))
    alerts = [*cleared, *(HealthAlert(tuple(alert_events)) for alert_events in uncleared)]
    reported = [alert for alert in alerts if alert.opening_event or alert.is_suspected]
    return tuple(sorted(reported, key=lambda alert: alert.opened_at, reverse=True))


def _find_events_of_alert(event: HealthEvent, uncleared: list[list[HealthEvent]]) -> list[HealthEvent] | None:
    of_subject = [
        events
        for events in uncleared
        if (events[0].cluster_id, events[0].broker_id) == (event.cluster_id, event.broker_id)
    ]
    by_fingerprint = [events for events in of_subject if events[-1].fingerprint == event.fingerprint]
    by_state = [events for events in of_subject if events[-1].to_state == event.from_state]
    return next(iter([*by_fingerprint, *by_state]), None)


def select_open_alerts(alerts: Sequence[HealthAlert]) -> tuple[HealthAlert, ...]:
    """Return the alerts that are open."""
    return tuple(alert for alert in alerts if alert.is_open)
