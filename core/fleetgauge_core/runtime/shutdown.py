"""How a long-running command is asked to end."""

import signal
import time


class Stopping:
    """A flag that a signal handler may set.

    Not a threading.Event: its ``set`` takes a lock, and a second signal while the
    first one's handler holds it would never return.
    """

    def __init__(self) -> None:
        self._asked = False

    def set(self) -> None:
        self._asked = True

    def is_set(self) -> bool:
        return self._asked

    def wait(self, seconds: float) -> bool:
        """Let that time pass; whether it was asked to end by then."""
        if not self._asked:
            time.sleep(seconds)
        return self._asked


def stopping_on_signals() -> Stopping:
    """A flag that SIGINT and SIGTERM set."""
    stopping = Stopping()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping
