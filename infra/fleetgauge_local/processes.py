"""Processes of which nobody but this fleet is the owner: known by id and start time."""

import contextlib
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

# The kernel's boot time, from which start times are computed, moves a little as the clock is set.
_SAME_START_S = 1.5
_POLL_S = 0.02


@dataclass(frozen=True)
class Identity:
    """A process for certain: an id alone may be another's by now."""

    pid: int
    created: float


def identify(pid: int) -> Identity:
    """The identity of a running process."""
    return Identity(pid, psutil.Process(pid).create_time())


def find(identity: Identity) -> psutil.Process | None:
    """The process, unless it has ended."""
    try:
        process = psutil.Process(identity.pid)
        same = abs(process.create_time() - identity.created) < _SAME_START_S
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return process
    except psutil.NoSuchProcess:
        pass
    return None


def end(identities: Iterable[Identity], grace_s: float) -> int:
    """End those that still run, stopped ones too; kill what has not ended in time. How many there were."""
    wanted = tuple(identities)
    running = _send(wanted, signal.SIGTERM, signal.SIGCONT)
    if not _gone(wanted, grace_s):
        _send(wanted, signal.SIGKILL)
        _gone(wanted, grace_s)
    return running


def _send(identities: Iterable[Identity], *numbers: signal.Signals) -> int:
    running = [process for process in map(find, identities) if process is not None]
    for process in running:
        for number in numbers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    return len(running)


def _gone(identities: tuple[Identity, ...], deadline_s: float) -> bool:
    """Wait without reaping: the exit status of a child belongs to whoever started it."""
    deadline = time.monotonic() + deadline_s
    while any(find(identity) for identity in identities):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
