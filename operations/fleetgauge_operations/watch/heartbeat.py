"""A heartbeat for an external service that pages when it stops: a watch cannot page for its own failure.

It is sent while this watch is the leader and receives pulses. Any failure between an agent and a page
therefore stops it too: of all agents, of the telemetry cluster, of all watches or of outgoing connections.
"""

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from threading import Event, Thread

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import ReceiverEndpoint
from fleetgauge_operations.notify.receivers.endpoint import PostResult, post
from fleetgauge_operations.notify.receivers.heartbeat import heartbeat_body
from fleetgauge_operations.watch.notifier_context import NotifierContext

_log = logging.getLogger("fleetgauge.watch")

INTERVAL_S = 60.0
_CHECK_INTERVAL_S = 1.0
#: Agents send pulses every 5 s.
_PULSE_TIMEOUT = timedelta(minutes=1)


class Heartbeat:
    """Sends a POST once a minute from ``start`` to ``stop``. Findings do not affect it."""

    def __init__(self, notifier: Notifier, context: NotifierContext) -> None:
        self._notifier = notifier
        self._context = context
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Stop once a request in flight has ended."""
        self._stopping.set()
        self._thread.join()

    def notify(self, finding: Finding) -> None:
        """Ignore the finding."""

    def postpone(self, finding: Finding) -> None:
        """Ignore the finding."""

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        """Ignore the findings."""

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stopping.wait(_CHECK_INTERVAL_S):
            if time.monotonic() >= due_s and self._receives_pulses() and self._context.confirm_leadership():
                due_s = time.monotonic() + INTERVAL_S
                self._send()

    def _send(self) -> None:
        label = self._notifier.name or "heartbeat"
        try:
            answer = post(ReceiverEndpoint(self._notifier), "", heartbeat_body(self._context.clock()))
        except Exception:
            # An unexpected error must not end the thread: the service would page although the watch works.
            _log.exception("%s: periodic request failed unexpectedly", label)
            return
        if answer.result is not PostResult.ACCEPTED:
            _log.error("%s: periodic request %s", label, answer.description)

    def _receives_pulses(self) -> bool:
        last_pulse_at = self._context.last_pulse_at()
        return last_pulse_at is not None and abs(self._context.clock() - last_pulse_at) < _PULSE_TIMEOUT
