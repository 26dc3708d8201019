"""`fleetgauge observe` as a process beside a watch: paging never waits for it, and it ends with the watch."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from threading import Event, Thread
from types import TracebackType

from fleetgauge_core.runtime.shutdown import ShutdownFlag

_log = logging.getLogger("fleetgauge.watch")

_PR_SET_PDEATHSIG = 1
#: The pause before it starts again doubles, unless it has run for a while.
_RESTART_AFTER_S, _MAX_RESTART_AFTER_S, _STEADY_S = 5.0, 60.0, 300.0
_POLL_S = 0.5
#: The observer ends within seconds; the watch itself has to end in time.
_END_S = 20.0


class ObserverProcess(AbstractContextManager["ObserverProcess"]):
    """Runs `fleetgauge observe` while the block runs, and starts it again if it ends.

    It is told to end as soon as ``shutdown`` is set, and has ended when the block has.
    """

    def __init__(
        self, arguments: Sequence[str], shutdown: ShutdownFlag, restart_after_s: float = _RESTART_AFTER_S
    ) -> None:
        """Prepare to run the command with these arguments."""
        self._arguments = tuple(arguments)
        self._shutdown = shutdown
        self._restart_after_s = restart_after_s
        self._stopping = Event()
        # The kernel signals the process if the thread ends that has started it.
        self._thread = Thread(target=self._run, name="observer", daemon=True)

    def __enter__(self) -> "ObserverProcess":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def _is_over(self) -> bool:
        return self._stopping.is_set() or self._shutdown.is_set()

    def _run(self) -> None:
        wait_s = self._restart_after_s
        while not self._is_over:
            started_s = time.monotonic()
            try:
                process = self._start()
            except OSError as error:
                # Whatever keeps it from starting must not end the watch.
                _log.error("the observer cannot be started: %s; it is tried again in %g s", error, wait_s)
            else:
                code = self._wait(process)
                if self._is_over:
                    return
                if time.monotonic() - started_s > _STEADY_S:
                    wait_s = self._restart_after_s
                _log.error("the observer ended with exit code %d; it starts again in %g s", code, wait_s)
            self._pause(wait_s)
            wait_s = min(2 * wait_s, _MAX_RESTART_AFTER_S)

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while not self._is_over and time.monotonic() < until_s:
            self._stopping.wait(_POLL_S)

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), *self._arguments], stdin=subprocess.DEVNULL
        )

    def _wait(self, process: "subprocess.Popen[bytes]") -> int:
        """Wait until the process ends, or end it, and return its exit code."""
        while not self._is_over:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_S)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_END_S)
        process.kill()
        return process.wait()


def _become_observer(parent: int, arguments: Sequence[str]) -> None:
    """Become the command, which the kernel tells to end if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have been killed before.
    if os.getppid() == parent:
        os.execv(sys.executable, [sys.executable, "-m", "fleetgauge_core", "observe", *arguments])


if __name__ == "__main__":
    _become_observer(int(sys.argv[1]), sys.argv[2:])
