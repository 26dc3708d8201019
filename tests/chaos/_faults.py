"""Faults that a local fleet does not inject itself."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

STOPPED_S, RUNNING_S = 0.070, 0.015


@contextmanager
def slow_down(process: psutil.Process) -> Iterator[None]:
    """Stop a process for 70 of every 85 ms while the block runs."""
    is_over = threading.Event()

    def alternate() -> None:
        while not is_over.wait(RUNNING_S):
            process.send_signal(signal.SIGSTOP)
            # This sleep is the fault itself; it waits for nothing.
            time.sleep(STOPPED_S)
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def stop_processes(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """Stop processes while the block runs."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
