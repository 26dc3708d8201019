"""Send an outbox from its own thread, so that a slow receiver delays nothing else."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from fleetgauge_operations.notify.outbox import Outbox

#: Maximum duration of the last attempt when the process ends.
LAST_ATTEMPT_S = 30
_LISTEN_S = 0.5
_ERROR_PAUSE_S = 30

_log = logging.getLogger("fleetgauge.notify")


class OutboxThread:
    """Sends from ``start`` to ``stop``, or until ``may_send`` returns False: another process sends."""

    def __init__(self, outbox: Outbox, may_send: Callable[[], bool], name: str) -> None:
        self._outbox = outbox
        self._may_send = may_send
        self._stopping = Event()
        self._name = name
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is queued, for at most LAST_ATTEMPT_S; the next process sends the rest."""
        self._stopping.set()
        self._outbox.wake()
        self._thread.join(LAST_ATTEMPT_S)

    def _run(self) -> None:
        while True:
            # Read before sending, so that everything put before ``stop`` is sent once.
            is_last = self._stopping.is_set()
            if not self._send() or is_last:
                return
            self._outbox.wait(min(_LISTEN_S, self._outbox.due_in_s()))

    def _send(self) -> bool:
        """Send what is due. An unexpected error ends neither the thread nor the notifications after it."""
        try:
            return self._outbox.send(self._may_send)
        except Exception:
            _log.exception(
                "%s: sending failed unexpectedly; next attempt in %d s", self._name, _ERROR_PAUSE_S
            )
            self._stopping.wait(_ERROR_PAUSE_S)
            return True
