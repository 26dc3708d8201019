"""Faults that a local fleet does not make itself."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

STOPPED_S, RUNNING_S = 0.070, 0.015


@contextmanager
def slowed(process: psutil.Process) -> Iterator[None]:
    """Stopped 70 of every 85 ms while the block runs."""
    enough = threading.Event()

    def slow() -> None:
        while not enough.wait(RUNNING_S):
            process.send_signal(signal.SIGSTOP)
            # The slowness itself: nothing is waited for.
            time.sleep(STOPPED_S)
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@contextmanager
def stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """Standing still while the block runs."""
    for one in processes:
        one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            one.send_signal(signal.SIGCONT)
