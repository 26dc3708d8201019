"""Waiting for a condition that another process or thread makes true."""

import time
from collections.abc import Callable

#: The condition cannot be signalled, so it is polled.
POLL_S = 0.2


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, every_s: float = POLL_S) -> None:
    """Poll a condition until it is true. Raises: TimeoutError after ``timeout_s``, naming ``what``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(every_s)


def let_pass(until_s: float) -> None:
    """Sleep until that monotonic time, where the passing of time is what the test needs."""
    time.sleep(max(0.0, until_s - time.monotonic()))
