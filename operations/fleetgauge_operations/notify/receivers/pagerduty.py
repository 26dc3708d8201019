"""A notification as an event of PagerDuty's Events API v2; one PagerDuty incident per incident."""

from typing import Any

from fleetgauge_core.http import encode_body
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.limits import cut_characters, cut_details

PATH = "/v2/enqueue"

_SEVERITIES = {"page": "critical", "ticket": "warning", "burn-in": "info", "info": "info"}
#: PagerDuty rejects longer summaries.
_LONGEST_SUMMARY = 1024
#: PagerDuty rejects events of more than 512 KB.
_MAX_EVENT_BYTES = 512_000


def pagerduty_body(notification: Notification, routing_key: str) -> dict[str, Any]:
    """Return a trigger or resolve event; ``routing_key`` is that of the service's integration."""
    event: dict[str, Any] = {"routing_key": routing_key, "dedup_key": notification.incident}
    if not notification.firing:
        return {**event, "event_action": "resolve"}
    page = notification.page_url
    payload: dict[str, Any] = {
        "summary": cut_characters(notification.summary, _LONGEST_SUMMARY),
        "severity": _SEVERITIES[notification.severity],
        "source": notification.cluster_id,
        "component": None if notification.broker_id is None else f"broker {notification.broker_id}",
        "group": notification.cluster_id,
        "class": notification.kind,
        "timestamp": notification.at.isoformat(),
        "custom_details": {},
    }
    event |= {
        "event_action": "trigger",
        "client": "Fleetgauge",
        "links": [{"href": page, "text": "History and evidence"}] if page else [],
        "payload": payload,
    }
    payload["custom_details"] = cut_details(notification.details, _MAX_EVENT_BYTES - len(encode_body(event)))
    return event
