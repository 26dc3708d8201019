"""`fleetgauge observe` as a process beside a watch: paging never waits for it, and it ends with the watch."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from threading import Event, Lock, Thread
from types import TracebackType

_log = logging.getLogger("fleetgauge.watch")

_PR_SET_PDEATHSIG = 1
_RESTART_AFTER_S = 5.0
#: The observer ends within seconds; the watch itself has to end in time.
_END_S = 20.0


class ObserverProcess(AbstractContextManager["ObserverProcess"]):
    """Runs `fleetgauge observe` while the block runs, and starts it again if it ends."""

    def __init__(self, arguments: Sequence[str], restart_after_s: float = _RESTART_AFTER_S) -> None:
        """Prepare to run the command with these arguments."""
        self._arguments = tuple(arguments)
        self._restart_after_s = restart_after_s
        self._stopping = Event()
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel signals the process if the thread ends that has started it.
        self._thread = Thread(target=self._run, name="observer", daemon=True)

    def __enter__(self) -> "ObserverProcess":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is not None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            process.kill()
        self._thread.join()

    def _run(self) -> None:
        while process := self._start():
            code = process.wait()
            if not self._stopping.is_set():
                after_s = f"{self._restart_after_s:g}"
                _log.error("the observer ended with exit code %d; it starts again in %s s", code, after_s)
            if self._stopping.wait(self._restart_after_s):
                return

    def _start(self) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopping.is_set():
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(os.getpid()), *self._arguments], stdin=subprocess.DEVNULL
            )
            return self._process


def _become_observer(parent: int, arguments: Sequence[str]) -> None:
    """Become the command, which the kernel tells to end if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have been killed before.
    if os.getppid() == parent:
        os.execv(sys.executable, [sys.executable, "-m", "fleetgauge_core", "observe", *arguments])


if __name__ == "__main__":
    _become_observer(int(sys.argv[1]), sys.argv[2:])
