"""A message to people, in every form that a receiver may want."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

Severity = Literal["page", "ticket", "burn-in"]

_WOULD_HAVE = "would have paged: "


@dataclass(frozen=True, slots=True)
class Notification:
    """A problem that begins, changes or ends.

    ``incident`` is the same from the beginning of a problem to its end; receivers deduplicate by it.
    ``notification_id`` is the same however often the message is sent.
    """

    notification_id: str
    incident: str
    firing: bool
    severity: Severity
    kind: str
    cluster_id: str
    at: datetime
    summary: str
    alert_name: str
    broker_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Alertmanager's, besides its name, cluster and severity; they never change during an incident."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Alertmanager's."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Webhooks' keys, besides those that every notification has."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """PagerDuty's custom details."""
    chat_lines: Sequence[str] = ()
    """Lines for a channel, below the summary, in Slack's markup."""
    page_url: str | None = None
    earlier_severities: tuple[Severity, ...] = ()
    """Severities under which the incident may have been opened; its end ends all of them."""

    def in_burn_in(self) -> Self:
        """Return the same for a receiver on trial: it wakes nobody, and says whether it would have."""
        severity: Severity = "burn-in"
        if not (self.firing and self.severity == "page"):
            return replace(self, severity=severity, earlier_severities=())
        annotations = {**self.annotations}
        if "summary" in annotations:
            annotations["summary"] = f"{_WOULD_HAVE}{annotations['summary']}"
        summary = f"{_WOULD_HAVE}{self.summary}"
        return replace(
            self, severity=severity, earlier_severities=(), summary=summary, annotations=annotations
        )
