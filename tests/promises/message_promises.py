"""JSON that leaves the product otherwise: to notifiers and probes of its health, and into its log."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.runtime.cli import Address
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.logs import NoFlood
from fleetgauge_core.runtime.logs import _Json as JsonLine
from fleetgauge_operations.mitigation.news import News
from fleetgauge_operations.notify.notification import Bulletin, message
from fleetgauge_operations.recovery.readiness.plan.findings import Finding as RecoveryFinding
from fleetgauge_operations.recovery.readiness.telling import bulletin_of
from fleetgauge_operations.watch import pagerduty, slack, webhook
from fleetgauge_operations.watch.alertmanager import Alert
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.message_format import Manner
from tests.promises.key_paths import NONE, Paths, paths_of_value
from tests.promises.source import literal_keys
from tests.promises.specimens import specimen
from tests.unit.operations.watch.tellings import NOON, PATH, cleared, named

_KINDS = ("webhook", "slack", "pagerduty", "alertmanager")


def collect() -> Iterator[str]:
    for what, paths in _documents().items():
        yield from (f"{what}: {path}" for path in paths)


def _documents() -> Mapping[str, Paths]:
    return {
        **{f"watch to {kind}": paths for kind, paths in _of_the_watch().items()},
        **{f"mitigate to {kind}": _bulletins(kind, _news()) for kind in _KINDS},
        **{f"recover to {kind}": _bulletins(kind, _recovery_news()) for kind in _KINDS},
        "heartbeat": literal_keys(Heartbeat._beat),
        "log line": _log_line(),
        "/livez": _vitals("livez"),
        "/readyz": _vitals("readyz"),
    }


def _of_the_watch() -> Mapping[str, Paths]:
    """Of a broker and of a path, as it is named and as it is cleared."""
    manner = Manner("https://page.example/", known_of=lambda _: ("known",))
    findings = [named(), cleared(), named(PATH, after := named(PATH).to_phase), cleared(PATH, after)]
    return {
        "webhook": _all(webhook.message(finding, manner) for finding in findings),
        "slack": _all(slack.message(finding, manner) for finding in findings),
        "pagerduty": _all(pagerduty.message(finding, manner, "key") for finding in findings),
        "alertmanager": _all(
            [Alert(finding.subject, named().to_phase, NOON, news=finding).as_posted(NOON, manner)]
            for finding in findings
        ),
    }


def _news() -> Iterator[Bulletin]:
    """A case of every outcome, so that somebody is wanted in some."""
    yield from (specimen(News, choice).bulletin for choice in range(6))


def _recovery_news() -> Iterator[Bulletin]:
    yield bulletin_of(specimen(RecoveryFinding), "https://page.example/")


def _bulletins(kind: str, bulletins: Iterator[Bulletin]) -> Paths:
    """Each as it opens and as it ends."""
    receiver = {"kind": kind, "url": "https://receiver.example/", "routing_key": None}
    notifier = specimen(Notifier).model_copy(update=receiver)
    return _all(
        message(notifier, replace(bulletin, opens=opens)) for bulletin in bulletins for opens in (True, False)
    )


def _log_line() -> Paths:
    """Of a line with an exception."""
    try:
        raise ValueError
    except ValueError:
        record = logging.LogRecord("fleetgauge", logging.ERROR, "file", 1, "words", (), sys.exc_info())
    NoFlood().filter(record)
    return paths_of_value(json.loads(JsonLine().format(record)))


def _vitals(path: str) -> Paths:
    """As a process that is ready answers."""
    vitals = Vitals("probe", 60)
    vitals.ready()
    with vitals.served(Address("127.0.0.1", 0)) as address, urlopen(f"http://{address}/{path}") as answer:
        return paths_of_value(json.load(answer))


def _all(values: Any) -> Paths:
    return NONE.union(*map(paths_of_value, values))
