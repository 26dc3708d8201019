"""A notification as a JSON document for programs."""

from typing import Any

from fleetgauge_operations.notify.notification import Notification


def webhook_body(notification: Notification) -> dict[str, Any]:
    """Return the document; ``id`` stays the same when the notification is sent again."""
    return {
        "id": notification.notification_id,
        "fingerprint": notification.incident,
        "status": "firing" if notification.firing else "resolved",
        "severity": notification.severity,
        "kind": notification.kind,
        "cluster": notification.cluster_id,
        "broker": notification.broker_id,
        "at": notification.at.isoformat(),
        "summary": notification.summary,
        **notification.document,
    }
