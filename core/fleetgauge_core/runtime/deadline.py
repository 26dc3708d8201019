"""Run jobs in parallel without waiting longer than a deadline."""

import threading
import time
from collections.abc import Callable, Iterable


def run_until_deadline(jobs: Iterable[Callable[[], None]], seconds: float) -> None:
    """Run jobs in parallel threads; return when all have ended or ``seconds`` have passed.

    Jobs that miss the deadline continue in daemon threads, because a DNS lookup that gets no
    response cannot be interrupted but must not keep the process from ending.

    Raises: the first exception that a job raised before the deadline.
    """
    errors: list[Exception] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            errors.append(error)

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    if errors:
        raise errors[0]
