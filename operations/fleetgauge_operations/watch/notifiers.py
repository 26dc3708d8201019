"""Where findings go. Each notifier is told of what is named and cleared, not of mere doubts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

import urllib3

from fleetgauge_operations.watch.alertmanager import Alertmanager
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.webhook import Webhook
from fleetgauge_pipelines.detection import Finding, Phase, Subject
from fleetgauge_probes.fleet import Notifier


class Sink(Protocol):
    """Somebody to tell, from ``start`` to ``stop``. Must not block the watch for long."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def tell(self, finding: Finding) -> None: ...

    def remind(self, named: Iterable[tuple[Subject, Phase]]) -> None:
        """These were named before this watch began."""


def sinks(
    notifiers: Sequence[Notifier], clock: Callable[[], datetime], metrics: WatchMetrics
) -> tuple[Sink, ...]:
    """One for each, in their order."""
    return tuple(_sinks(notifiers, clock, metrics))


def _sinks(
    notifiers: Sequence[Notifier], clock: Callable[[], datetime], metrics: WatchMetrics
) -> Iterator[Sink]:
    for notifier in notifiers:
        report = metrics.notifications(_host(notifier.url))
        match notifier.kind:
            case "webhook":
                yield Webhook(notifier.url, report)
            case "alertmanager":
                yield Alertmanager(notifier.url, clock, report)


def _host(url: str) -> str:
    """Whom a URL is sent to, as it is sent; all else in it may be a secret."""
    try:
        return urllib3.util.parse_url(url).host or "unknown"
    except urllib3.exceptions.LocationParseError:
        return "unknown"
