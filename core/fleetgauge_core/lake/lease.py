"""One pipeline per lake: a lease that the kernel takes back when its holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LeaseError(Exception):
    """Another pipeline writes this lake."""


@contextmanager
def lease(lake: str) -> Iterator[None]:
    """Hold the lake for writing. Raises LeaseError at once if somebody else does.

    Lakes behind a URI have no such lock: there, run one pipeline only.
    """
    if "://" in lake:
        yield
        return
    path = Path(lake, "_checkpoints", "lease")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LeaseError(f"{lake}: another pipeline is writing this lake; stop it first") from error
        yield
