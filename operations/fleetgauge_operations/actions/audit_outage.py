"""Outages of the audit log ops/actions, during which no action is taken and operators are notified.

An outage is known to one process only; another one that finds it reports it as the same incident.
"""

from dataclasses import dataclass
from datetime import datetime

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.slack import escape_markup


@dataclass(frozen=True, slots=True)
class AuditOutage:
    """The start and cause of a time in which no action on a cluster can be audited."""

    cluster_id: str
    cause: str
    since: datetime

    def notification(self) -> Notification:
        """Return the ticket that the outage opens."""
        summary = f"{self.cluster_id}: no action is taken on its brokers, because ops/actions is unavailable"
        return self._notification(summary, self.since, firing=True, causes=(self.cause,))

    def resolution(self, at: datetime) -> Notification:
        """Return the resolution of the ticket."""
        return self._notification(f"{self.cluster_id}: ops/actions is available again", at, firing=False)

    def _notification(
        self, summary: str, at: datetime, *, firing: bool, causes: tuple[str, ...] = ()
    ) -> Notification:
        incident = f"mitigate/{self.cluster_id}/record"
        notification_id = f"{incident}/{at.isoformat()}"
        kind = "MITIGATION_STANDS_STILL"
        byline = f"{at:%Y-%m-%d %H:%M:%S} UTC, fleetgauge mitigate run"
        return Notification(
            notification_id=notification_id,
            incident=incident,
            firing=firing,
            severity="ticket",
            kind=kind,
            cluster_id=self.cluster_id,
            at=at,
            summary=summary,
            alert_name="MITIGATION",
            labels={"action": "any"},
            annotations={"summary": summary, "kind": kind, "words": "\n".join(causes)},
            document={"words": list(causes)},
            details={"id": notification_id, "words": list(causes)},
            chat_lines=[escape_markup(byline)],
        )
