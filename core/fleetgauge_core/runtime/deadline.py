"""Work that must not hold anybody up."""

import threading
import time
from collections.abc import Callable, Iterable


def in_time(jobs: Iterable[Callable[[], None]], seconds: float) -> None:
    """Run all at once and return when all have ended or the time is over, whichever is first.

    What is late goes on as a daemon: a silent name server cannot be interrupted, and must
    not keep the process from ending. Raises what a job raised in time.
    """
    raised: list[Exception] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            raised.append(error)

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    if raised:
        raise raised[0]
