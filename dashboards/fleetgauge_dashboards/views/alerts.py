"""Changes of state folded into alerts: named at one time, cleared at another or still open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_dashboards.links import LONGEST, PLAIN, ClusterView, Leg, Lens, Span
from fleetgauge_dashboards.reader import HealthEvent

HEALTHY = "HEALTHY"
SUSPECT = "SUSPECT"

#: What a link to an alert shows around it.
BEFORE = timedelta(minutes=15)
AFTER = timedelta(minutes=15)
#: A link to an open alert shows what is to come too.
AHEAD = timedelta(minutes=45)


@dataclass(frozen=True, slots=True)
class Alert:
    """One finding from its first sign to its end. Changes are in time's order, never none."""

    changes: tuple[HealthEvent, ...]

    @property
    def alert_id(self) -> str:
        return self.changes[0].event_id

    @property
    def cluster_id(self) -> str:
        return self.changes[0].cluster_id

    @property
    def broker_id(self) -> int | None:
        return self.changes[0].broker_id

    @property
    def named(self) -> HealthEvent | None:
        """The change that named the finding; None while it is only suspected."""
        return next((c for c in self.changes if c.to_state not in (HEALTHY, SUSPECT)), None)

    @property
    def kind(self) -> str:
        """What it is called now, or was called last."""
        called = [c.kind for c in self.changes if c.to_state not in (HEALTHY, SUSPECT)]
        return called[-1] if called else self.changes[-1].kind

    @property
    def began(self) -> datetime:
        return self.changes[0].at

    @property
    def opened(self) -> datetime:
        """When it was named, or first suspected."""
        return self.named.at if self.named else self.began

    @property
    def cleared(self) -> datetime | None:
        last = self.changes[-1]
        return last.at if last.to_state == HEALTHY else None

    @property
    def is_open(self) -> bool:
        """Named and not cleared."""
        return self.cleared is None and self.named is not None

    @property
    def is_suspicion(self) -> bool:
        """Not named yet, and not cleared either."""
        return self.cleared is None and self.named is None

    @property
    def whom(self) -> str:
        """The broker or the cluster, for a person."""
        return self.cluster_id if self.broker_id is None else f"{self.cluster_id} broker {self.broker_id}"

    def lasted(self, now: datetime) -> timedelta:
        """From when it was named until it cleared, or until now."""
        return (self.cleared or now) - self.opened

    def view(self, lens: Lens = PLAIN) -> ClusterView:
        """The cluster at that time, on the leg that tells which broker."""
        start = self.began - BEFORE
        end = self.opened + AHEAD if self.cleared is None else self.cleared + AFTER
        span = Span(start, min(end, start + LONGEST))
        return ClusterView(self.cluster_id, shown=span, leg=Leg.LEADER, lens=lens)


def alerts(events: Sequence[HealthEvent]) -> tuple[Alert, ...]:
    """Newest first. A suspicion that passed without a name is nobody's alert and left out.

    A change belongs to the unfinished finding of its fingerprint, or else to
    the one of its broker in the state that the change leaves: a finding may
    change its kind on the way.
    """
    unfinished: list[list[HealthEvent]] = []
    done: list[Alert] = []
    for event in sorted(events, key=lambda e: e.at):
        changes = _continued(event, unfinished)
        if changes is None:
            if event.to_state == HEALTHY:
                continue  # the end of something whose beginning is not known
            changes = []
            unfinished.append(changes)
        changes.append(event)
        if event.to_state == HEALTHY:
            unfinished = [other for other in unfinished if other is not changes]
            done.append(Alert(tuple(changes)))
    found = [*done, *(Alert(tuple(changes)) for changes in unfinished)]
    worth_telling = [alert for alert in found if alert.named or alert.is_suspicion]
    return tuple(sorted(worth_telling, key=lambda a: a.opened, reverse=True))


def _continued(event: HealthEvent, unfinished: list[list[HealthEvent]]) -> list[HealthEvent] | None:
    same = [c for c in unfinished if (c[0].cluster_id, c[0].broker_id) == (event.cluster_id, event.broker_id)]
    by_fingerprint = [c for c in same if c[-1].fingerprint == event.fingerprint]
    by_state = [c for c in same if c[-1].to_state == event.from_state]
    return next(iter([*by_fingerprint, *by_state]), None)


def still_open(found: Sequence[Alert]) -> tuple[Alert, ...]:
    return tuple(alert for alert in found if alert.is_open)
