"""The user's cache folder, for files that can be downloaded or computed again."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def default_cache_folder() -> Path:
    """Return the cache folder of the user; XDG_CACHE_HOME overrides its location."""
    return platformdirs.user_cache_path("fleetgauge")


@contextmanager
def lock_folder(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold a folder's lock file, waiting for another process if needed.

    ``progress`` is called with one line before waiting. The kernel releases the lock of a killed process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process to finish in {folder}")
            fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield
