"""A sign of life to somebody who pages when it stops: what watches must be watched from outside.

It is given while this watch is at work and hears an agent. So whatever stands still on the way from an
agent to a page stops it too: every agent, the telemetry cluster, every watch, the way out.
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

EVERY_S = 60.0
_LOOK_EVERY_S = 1.0
#: Pulses come every 5 s.
_HEARD_WITHIN = timedelta(minutes=1)


class Heartbeat:
    """POSTs once a minute, from ``start`` to ``stop``. ``address`` may raise SecretError."""

    def __init__(self, address: Callable[[], str], telling: NotifierContext) -> None:
        self._address = address
        self._telling = telling
        self._stopping = Event()
        self._thread = Thread(target=self._go_on, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def notify(self, finding: Finding) -> None:
        """That something is wrong is no reason to fall silent."""

    def postpone(self, finding: Finding) -> None:
        """Nor is that it is planned."""

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        """Nor is that."""

    def _go_on(self) -> None:
        due_s = time.monotonic()
        with open_pool() as pool:
            while not self._stopping.wait(_LOOK_EVERY_S):
                if time.monotonic() >= due_s and self._hears() and self._telling.may_tell():
                    due_s = time.monotonic() + EVERY_S
                    self._beat(pool)

    def _beat(self, pool: urllib3.PoolManager) -> None:
        body = {"status": "watching", "at": self._telling.clock().isoformat()}
        try:
            post(pool, "heartbeat", self._address(), body, "a sign of life")
        except SecretError as error:
            _log.error("heartbeat: a sign of life not delivered: %s", error)

    def _hears(self) -> bool:
        heard = self._telling.heard()
        return heard is not None and abs(self._telling.clock() - heard) < _HEARD_WITHIN
