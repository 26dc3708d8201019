"""A message to people, with the parts that each kind of receiver needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

#: ``info`` is that of a test.
Severity = Literal["page", "ticket", "burn-in", "info"]

_WOULD_HAVE = "would have paged: "


@dataclass(frozen=True, slots=True)
class Notification:
    """The start, a change or the end of a problem.

    ``incident`` stays the same from the start of a problem to its end; receivers deduplicate by it.
    ``notification_id`` stays the same when the message is sent again.
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
    """Alertmanager labels besides name, cluster and severity; they never change during an incident."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Alertmanager annotations."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the webhook document besides those that every notification has."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Custom details for PagerDuty."""
    chat_lines: Sequence[str] = ()
    """Lines of the Slack message below the summary, in Slack's markup."""
    page_url: str | None = None
    earlier_severities: tuple[Severity, ...] = ()
    """Severities under which the incident may have been opened; its resolution resolves all of them."""

    def in_burn_in(self) -> Self:
        """Return the notification for trial mode: it does not page, and says whether it would have."""
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
