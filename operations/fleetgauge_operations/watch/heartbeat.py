"""A heartbeat for an external service that pages when it stops: a watch cannot page for its own failure.

It is sent while this watch is the leader and receives pulses. Any failure between an agent and a page
therefore stops it too: of all agents, of the telemetry cluster, of all watches or of outgoing connections.
"""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from threading import Event, Thread

import urllib3

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import SecretError
from fleetgauge_operations.notify.receivers.endpoint import open_pool, post
from fleetgauge_operations.watch.notifier_context import NotifierContext

_log = logging.getLogger("fleetgauge.watch")

INTERVAL_S = 60.0
_CHECK_INTERVAL_S = 1.0
#: Agents send pulses every 5 s.
_PULSE_TIMEOUT = timedelta(minutes=1)


class Heartbeat:
    """Sends a POST once a minute from ``start`` to ``stop``; ``read_url`` may raise SecretError.

    Findings do not affect it.
    """

    def __init__(self, read_url: Callable[[], str], context: NotifierContext) -> None:
        self._read_url = read_url
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
        with open_pool() as pool:
            while not self._stopping.wait(_CHECK_INTERVAL_S):
                if (
                    time.monotonic() >= due_s
                    and self._receives_pulses()
                    and self._context.confirm_leadership()
                ):
                    due_s = time.monotonic() + INTERVAL_S
                    self._send(pool)

    def _send(self, pool: urllib3.PoolManager) -> None:
        body = {"status": "watching", "at": self._context.clock().isoformat()}
        try:
            post(pool, "heartbeat", self._read_url(), body, "periodic request")
        except SecretError as error:
            _log.error("heartbeat: periodic request not delivered: %s", error)

    def _receives_pulses(self) -> bool:
        last_pulse_at = self._context.last_pulse_at()
        return last_pulse_at is not None and abs(self._context.clock() - last_pulse_at) < _PULSE_TIMEOUT
