"""JSON keys of notifications, health endpoints and log lines."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.runtime.cli import ListenAddress
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.logs import JsonFormatter as JsonLine
from fleetgauge_core.runtime.logs import LogRateLimiter
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.notify.receivers.heartbeat import heartbeat_body
from fleetgauge_operations.recovery.readiness.finding_notification import finding_notification
from fleetgauge_operations.recovery.readiness.plan.findings import RecoveryFinding
from fleetgauge_operations.watch.message_format import FindingFormat
from tests.promises.key_paths import NONE, Paths, paths_of_value
from tests.promises.source import literal_keys
from tests.promises.specimens import specimen
from tests.unit.operations.watch.sample_findings import NOON, PATH, cleared, opened

_KINDS = ("webhook", "slack", "pagerduty", "alertmanager")


def collect() -> Iterator[str]:
    for name, paths in _collect_paths().items():
        yield from (f"{name}: {path}" for path in paths)


def _collect_paths() -> Mapping[str, Paths]:
    return {
        **{f"watch to {kind}": paths for kind, paths in _collect_watch_notifications().items()},
        **{
            f"mitigate to {kind}": _collect_notifications(kind, _build_case_notifications())
            for kind in _KINDS
        },
        **{
            f"recover to {kind}": _collect_notifications(kind, _build_recovery_notifications())
            for kind in _KINDS
        },
        "heartbeat": literal_keys(heartbeat_body),
        "log line": _collect_log_line(),
        "/livez": _collect_health("livez"),
        "/readyz": _collect_health("readyz"),
    }


def _collect_watch_notifications() -> Mapping[str, Paths]:
    """Return the key paths for findings of a broker and of a path, opened and resolved, by notifier kind."""
    finding_format = FindingFormat("https://page.example/", context_of=lambda _: ("context",))
    findings = [opened(), cleared(), opened(PATH, after := opened(PATH).to_state), cleared(PATH, after)]
    notifications = [finding_format.build_notification(finding) for finding in findings]
    return {
        kind: _collect_all(_build_body(kind, notification) for notification in notifications)
        for kind in _KINDS
    }


def _build_case_notifications() -> Iterator[Notification]:
    """Yield the notification of a case with every outcome, of which some open an incident."""
    yield from (specimen(CaseNotification, choice).notification for choice in range(6))


def _build_recovery_notifications() -> Iterator[Notification]:
    yield finding_notification(specimen(RecoveryFinding), "https://page.example/")


def _collect_notifications(kind: str, notifications: Iterator[Notification]) -> Paths:
    """Return the key paths of each notification, firing and resolved."""
    return _collect_all(
        _build_body(kind, replace(notification, firing=firing))
        for notification in notifications
        for firing in (True, False)
    )


def _build_body(kind: str, notification: Notification) -> Any:
    receiver = {"kind": kind, "url": "https://receiver.example/", "routing_key": None}
    notifier = specimen(Notifier).model_copy(update=receiver)
    return Receiver(notifier).body([notification], NOON)


def _collect_log_line() -> Paths:
    """Return the key paths of a log line with an exception."""
    try:
        raise ValueError
    except ValueError:
        record = logging.LogRecord("fleetgauge", logging.ERROR, "file", 1, "words", (), sys.exc_info())
    LogRateLimiter().filter(record)
    return paths_of_value(json.loads(JsonLine().format(record)))


def _collect_health(path: str) -> Paths:
    """Return the key paths of the response of a process that is ready."""
    health = ProcessHealth("probe", 60)
    health.mark_ready()
    with (
        health.serve(ListenAddress("127.0.0.1", 0)) as address,
        urlopen(f"http://{address}/{path}") as response,
    ):
        return paths_of_value(json.load(response))


def _collect_all(values: Any) -> Paths:
    return NONE.union(*map(paths_of_value, values))
