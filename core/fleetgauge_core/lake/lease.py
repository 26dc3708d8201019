"""The lease of a lake: a file lock that allows one pipeline at a time, released when its process ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetgauge_core.errors import OperationalError


class LeaseError(OperationalError):
    """Another pipeline holds the lease of the lake."""


@contextmanager
def hold_lease(lake: str) -> Iterator[None]:
    """Hold the lease of the lake while the block runs.

    A lake in an object store has no lock; there, the operator must run one pipeline only.

    Raises: LeaseError immediately if another process holds the lease.
    """
    if "://" in lake:
        yield
        return
    path = Path(lake, "_checkpoints", "lease")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LeaseError(f"{lake}: another pipeline is writing this lake; stop it first") from error
        yield
