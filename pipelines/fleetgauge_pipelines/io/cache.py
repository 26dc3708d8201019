"""The user's cache: whatever can be fetched or computed again."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def default_cache() -> Path:
    """Elsewhere if XDG_CACHE_HOME says so."""
    return platformdirs.user_cache_path("fleetgauge")


@contextmanager
def one_at_a_time(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """One process at a time works in a folder. The kernel drops the lock of a process that is killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that works in {folder}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
