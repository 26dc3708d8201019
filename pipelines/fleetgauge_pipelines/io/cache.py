"""The user's cache folder, for files that can be downloaded or computed again."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from fleetgauge_pipelines.io.errors import SetupError

#: In the class path of brokers, and in Spark's list of jars.
_SEPARATORS_OF_JARS = {":", ","}


def default_cache_folder() -> Path:
    """Return the cache folder of the user; XDG_CACHE_HOME overrides its location.

    Raises: SetupError if Java cannot load jars from a folder with this path.
    """
    folder = platformdirs.user_cache_path("fleetgauge")
    for separator in _SEPARATORS_OF_JARS & set(str(folder)):
        raise SetupError(
            f"{folder}: Java takes {separator!r} for the end of a path: set XDG_CACHE_HOME to another folder"
        )
    return folder


def describe_cache_error(folder: Path, error: OSError) -> str:
    """Explain in one line why a folder of the cache cannot be used, and how to mend it."""
    if isinstance(error, PermissionError):
        return f"{folder}: not readable and writable for this user: set XDG_CACHE_HOME to a folder that is"
    return f"{folder}: {error.strerror or error}: free space or set XDG_CACHE_HOME"


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
