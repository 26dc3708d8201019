"""Notifications as alerts for Prometheus Alertmanager, API v2."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_operations.notify.notification import Notification, Severity

PATH = "/api/v2/alerts"


def alertmanager_body(
    notifications: Iterable[Notification], now: datetime, valid_for: timedelta
) -> list[dict[str, Any]]:
    """Return PostableAlerts; a firing one ends after ``valid_for`` unless it is sent again."""
    return [
        _alert(notification, severity, now, valid_for)
        for notification in notifications
        for severity in _severities(notification)
    ]


def _severities(notification: Notification) -> Iterable[Severity]:
    if notification.firing:
        return (notification.severity,)
    return dict.fromkeys((notification.severity, *notification.earlier_severities))


def _alert(
    notification: Notification, severity: Severity, now: datetime, valid_for: timedelta
) -> dict[str, Any]:
    # A finding has the time of an agent's clock; Alertmanager rejects an alert that starts after its end.
    starts = min(notification.at, now)
    page = {"generatorURL": notification.page_url} if notification.page_url else {}
    return {
        "labels": {
            "alertname": notification.alert_name,
            "cluster": notification.cluster_id,
            **notification.labels,
            "severity": severity,
        },
        "annotations": dict(notification.annotations),
        **page,
        "startsAt": starts.isoformat(),
        "endsAt": (now + valid_for if notification.firing else starts).isoformat(),
    }
