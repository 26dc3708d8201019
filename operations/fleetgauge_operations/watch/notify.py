"""Where findings go. Each notifier is told of named and cleared brokers, not of mere doubts."""

import json
import logging
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Protocol

import urllib3

from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_pipelines.detection import Finding
from fleetgauge_probes.fleet import Notifier

_log = logging.getLogger("fleetgauge.watch")

_ATTEMPTS = 5
_LAST_WORDS_S = 30


class Sink(Protocol):
    """Somebody to tell. Must not block the watch for long."""

    def tell(self, finding: Finding) -> None: ...


class Webhook:
    """POSTs each finding as JSON from a thread of its own; a slow receiver delays nobody.

    ``report`` hears of each, when it is dealt with, whether the receiver took it.
    """

    def __init__(self, url: str, report: Callable[[bool], None]) -> None:
        self._url = url
        self._report = report
        self._waiting: SimpleQueue[Finding] = SimpleQueue()
        self._stopping = Event()
        self._thread = Thread(target=self._send_all, name="webhook", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send what waits, within a bound, then end."""
        self._stopping.set()
        self._thread.join(_LAST_WORDS_S)

    def tell(self, finding: Finding) -> None:
        self._waiting.put(finding)

    def _send_all(self) -> None:
        retries = urllib3.Retry(
            _ATTEMPTS,
            backoff_factor=0.5,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,
            # A receiver that asks for an hour must not hold up the news behind it.
            respect_retry_after_header=False,
        )
        with urllib3.PoolManager(retries=retries, timeout=urllib3.Timeout(5)) as pool:
            while not (self._stopping.is_set() and self._waiting.empty()):
                try:
                    finding = self._waiting.get(timeout=0.5)
                except Empty:
                    continue
                self._report(self._post(pool, finding))

    def _post(self, pool: urllib3.PoolManager, finding: Finding) -> bool:
        """Whether the receiver took it."""
        try:
            answer = pool.request("POST", self._url, json=message(finding))
        except urllib3.exceptions.HTTPError as error:
            # The URL may carry a secret; the error's class says enough.
            _log.error("webhook: event %s not delivered: %s", finding.event.event_id, type(error).__name__)
            return False
        if answer.status >= 400:
            _log.error("webhook: event %s refused with status %d", finding.event.event_id, answer.status)
        return answer.status < 400


def message(finding: Finding) -> dict[str, Any]:
    """What a receiver is told; the same event has the same id however often it is sent."""
    event = finding.event
    return {
        "id": event.event_id,
        "fingerprint": event.fingerprint,
        "status": "resolved" if finding.clears else "firing",
        "kind": event.kind,
        "cluster": event.cluster_id,
        "broker": event.broker_id,
        "at": event.at.isoformat(),
        "summary": summary(finding),
        "evidence": json.loads(event.evidence),
    }


def summary(finding: Finding) -> str:
    """One line for a person."""
    event = finding.event
    what = "is back" if finding.clears else "is down: it neither answers nor acknowledges"
    return f"{event.cluster_id}: broker {event.broker_id} {what}"


def webhooks(notifiers: Sequence[Notifier], metrics: WatchMetrics) -> tuple[Webhook, ...]:
    return tuple(
        Webhook(notifier.url, metrics.notifications(_host(notifier.url)))
        for notifier in notifiers
        if notifier.kind == "webhook"
    )


def _host(url: str) -> str:
    """Whom a URL is sent to, as it is sent; all else in it may be a secret."""
    try:
        return urllib3.util.parse_url(url).host or "unknown"
    except urllib3.exceptions.LocationParseError:
        return "unknown"
