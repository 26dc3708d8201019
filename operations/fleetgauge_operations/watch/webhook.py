"""Findings to whoever takes a POST with JSON: each once, in their order."""

import json
import logging
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import urllib3

from fleetgauge_operations.watch.http import LAST_WORDS_S, posting
from fleetgauge_operations.watch.words import summary
from fleetgauge_pipelines.detection import Finding, Phase, Subject

_log = logging.getLogger("fleetgauge.watch")


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
        self._thread.join(LAST_WORDS_S)

    def tell(self, finding: Finding) -> None:
        self._waiting.put(finding)

    def remind(self, named: Iterable[tuple[Subject, Phase]]) -> None:
        """It was told already."""

    def _send_all(self) -> None:
        with posting() as pool:
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
        "vantage": finding.subject.vantage,
        "at": event.at.isoformat(),
        "summary": summary(finding.subject, finding.from_phase, finding.to_phase),
        "evidence": json.loads(event.evidence),
    }
