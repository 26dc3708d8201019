"""An outbox that is sent from a thread of its own, so that a slow receiver delays nobody."""

from collections.abc import Callable
from threading import Event, Thread

from fleetgauge_operations.notify.outbox import Outbox
from fleetgauge_operations.notify.receivers.endpoint import open_pool

#: How long the last attempt may take when the process ends.
LAST_ATTEMPT_S = 30
_LISTEN_S = 0.5


class OutboxThread:
    """Sends from ``start`` to ``stop``, or until ``may_send`` says that another process sends now."""

    def __init__(self, outbox: Outbox, may_send: Callable[[], bool], name: str) -> None:
        self._outbox = outbox
        self._may_send = may_send
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Try once more to send what waits, within a bound; the rest is left to the next process."""
        self._stopping.set()
        self._outbox.wake()
        self._thread.join(LAST_ATTEMPT_S)

    def _run(self) -> None:
        with open_pool() as pool:
            while True:
                # Read before sending, so that everything put before ``stop`` is tried.
                is_last = self._stopping.is_set()
                if not self._outbox.send(pool, self._may_send) or is_last:
                    return
                self._outbox.wait(min(_LISTEN_S, self._outbox.due_in_s()))
