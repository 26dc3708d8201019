"""Find and end processes by process id and start time, so that a reused id is never signalled."""

import contextlib
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

# Start times are computed from the boot time, which shifts slightly when the system clock is adjusted.
_SAME_START_S = 1.5
_POLL_S = 0.02


@dataclass(frozen=True)
class ProcessIdentity:
    """A process id with its start time; the id alone may have been reused."""

    pid: int
    created: float


def identify(pid: int) -> ProcessIdentity:
    """Return the identity of a running process.

    Raises: psutil.NoSuchProcess when no process has this id.
    """
    return ProcessIdentity(pid, psutil.Process(pid).create_time())


def find_process(identity: ProcessIdentity) -> psutil.Process | None:
    """Return the process, or None if it has ended or its id was reused."""
    try:
        process = psutil.Process(identity.pid)
        same = abs(process.create_time() - identity.created) < _SAME_START_S
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return process
    except psutil.NoSuchProcess:
        pass
    return None


def terminate_all(identities: Iterable[ProcessIdentity], grace_s: float) -> int:
    """Send SIGTERM, then SIGKILL to those still alive after ``grace_s`` seconds.

    Suspended processes are resumed so that they can end. Returns how many processes were running.
    """
    targets = tuple(identities)
    running = _send(targets, signal.SIGTERM, signal.SIGCONT)
    if not _wait_until_ended(targets, grace_s):
        _send(targets, signal.SIGKILL)
        _wait_until_ended(targets, grace_s)
    return running


def _send(identities: Iterable[ProcessIdentity], *numbers: signal.Signals) -> int:
    running = [process for process in map(find_process, identities) if process is not None]
    for process in running:
        for number in numbers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    return len(running)


def _wait_until_ended(identities: tuple[ProcessIdentity, ...], deadline_s: float) -> bool:
    """Return whether all ended in time. Does not reap children: their parent needs the exit status."""
    deadline = time.monotonic() + deadline_s
    while any(find_process(identity) for identity in identities):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
