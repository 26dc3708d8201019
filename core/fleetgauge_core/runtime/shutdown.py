"""A request to end a long-running command."""

import time


class ShutdownFlag:
    """A flag that is safe to set from a signal handler.

    threading.Event is not: its ``set`` takes a lock, and if a second signal arrives while
    the handler of the first holds that lock, the process deadlocks.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Request the shutdown."""
        self._is_set = True

    def is_set(self) -> bool:
        """Return whether the shutdown has been requested."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Sleep, unless the shutdown was requested before; return whether it is requested by the end."""
        if not self._is_set:
            time.sleep(seconds)
        return self._is_set
