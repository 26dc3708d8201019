"""Waiting for what another process does."""

import time
from collections.abc import Callable

#: Nothing tells when it has happened, so it is looked at again and again.
POLL_S = 0.2


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, every_s: float = POLL_S) -> None:
    """Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(every_s)


def let_pass(until_s: float) -> None:
    """Until that monotonic time: it is itself the experiment, and there is nothing else to wait for."""
    time.sleep(max(0.0, until_s - time.monotonic()))
