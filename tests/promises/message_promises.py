"""JSON that leaves the product otherwise: to notifiers and probes of its health, and into its log."""

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
from fleetgauge_operations.recovery.readiness.finding_notification import finding_notification
from fleetgauge_operations.recovery.readiness.plan.findings import RecoveryFinding
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.message_format import FindingFormat
from tests.promises.key_paths import NONE, Paths, paths_of_value
from tests.promises.source import literal_keys
from tests.promises.specimens import specimen
from tests.unit.operations.watch.sample_findings import NOON, PATH, cleared, opened

_KINDS = ("webhook", "slack", "pagerduty", "alertmanager")


def collect() -> Iterator[str]:
    for what, paths in _documents().items():
        yield from (f"{what}: {path}" for path in paths)


def _documents() -> Mapping[str, Paths]:
    return {
        **{f"watch to {kind}": paths for kind, paths in _of_the_watch().items()},
        **{f"mitigate to {kind}": _notifications(kind, _news()) for kind in _KINDS},
        **{f"recover to {kind}": _notifications(kind, _recovery_news()) for kind in _KINDS},
        "heartbeat": literal_keys(Heartbeat._send),
        "log line": _log_line(),
        "/livez": _health("livez"),
        "/readyz": _health("readyz"),
    }


def _of_the_watch() -> Mapping[str, Paths]:
    """Of a broker and of a path, as it opens and as it is resolved."""
    finding_format = FindingFormat("https://page.example/", context_of=lambda _: ("context",))
    findings = [opened(), cleared(), opened(PATH, after := opened(PATH).to_state), cleared(PATH, after)]
    notifications = [finding_format.build_notification(finding) for finding in findings]
    return {kind: _all(_body(kind, each) for each in notifications) for kind in _KINDS}


def _news() -> Iterator[Notification]:
    """A case of every outcome, so that some open an incident."""
    yield from (specimen(CaseNotification, choice).notification for choice in range(6))


def _recovery_news() -> Iterator[Notification]:
    yield finding_notification(specimen(RecoveryFinding), "https://page.example/")


def _notifications(kind: str, notifications: Iterator[Notification]) -> Paths:
    """Each as it opens and as it ends."""
    return _all(
        _body(kind, replace(notification, firing=firing))
        for notification in notifications
        for firing in (True, False)
    )


def _body(kind: str, notification: Notification) -> Any:
    receiver = {"kind": kind, "url": "https://receiver.example/", "routing_key": None}
    notifier = specimen(Notifier).model_copy(update=receiver)
    return Receiver(notifier).body([notification], NOON)


def _log_line() -> Paths:
    """Of a line with an exception."""
    try:
        raise ValueError
    except ValueError:
        record = logging.LogRecord("fleetgauge", logging.ERROR, "file", 1, "words", (), sys.exc_info())
    LogRateLimiter().filter(record)
    return paths_of_value(json.loads(JsonLine().format(record)))


def _health(path: str) -> Paths:
    """As a process that is ready answers."""
    health = ProcessHealth("probe", 60)
    health.mark_ready()
    with (
        health.serve(ListenAddress("127.0.0.1", 0)) as address,
        urlopen(f"http://{address}/{path}") as answer,
    ):
        return paths_of_value(json.load(answer))


def _all(values: Any) -> Paths:
    return NONE.union(*map(paths_of_value, values))
