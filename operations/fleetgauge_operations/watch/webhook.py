"""Findings to whoever takes a POST with JSON: each once, in their order."""

import json
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from fleetgauge_operations.watch.http import LAST_WORDS_S, posted, posting
from fleetgauge_operations.watch.words import summary
from fleetgauge_pipelines.detection import Finding, Phase, Subject


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
                what = f"event {finding.event.event_id}"
                self._report(posted(pool, "webhook", self._url, message(finding), what))


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
