"""The lease of a lake, which allows one pipeline at a time.

A lake in a local folder has a file lock, which the kernel releases when its process ends. A lake at a URI may
be reached from several machines, and has a shared lease, which expires.
"""

import fcntl
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.shared_lease import (
    LeaseHolder,
    LeaseLostError,
    LeaseTakenError,
    NoConditionalWritesError,
    SharedLease,
    StoreUnavailableError,
    renewing,
)
from fleetgauge_core.runtime.uptime import uptime_ns

_NANOSECONDS = 1e9


class LeaseError(OperationalError):
    """Another pipeline holds the lease of the lake, or the lake can have none."""


class Lease(Protocol):
    """The permission to write to a lake."""

    def confirm(self) -> None:
        """Return if this process may commit now. Raises: LeaseLostError."""


class _UncheckedLease:
    """The lease of an operator who says that there is no other writer."""

    def confirm(self) -> None:
        """Return in any case."""


class _FileLease:
    """A locked file. The kernel keeps the lock while its process lives, also if it is stopped."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path = path
        self._file = file

    def confirm(self) -> None:
        """Return if others see this lock; they do not once the file was removed or replaced."""
        try:
            is_seen = os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except FileNotFoundError:
            is_seen = False
        if not is_seen:
            raise LeaseLostError(
                f"{self._path} was removed or replaced, so that another process may write: start again"
            )


@contextmanager
def hold_lease(
    lake: str, command: str, progress: Callable[[str], None], *, is_only_writer: bool = False
) -> Iterator[Lease]:
    """Hold the lease of the lake while the block runs; ``command`` is what others are told about its holder.

    ``is_only_writer``: the operator says that no other process writes to it, and no lease is needed.

    Raises: LeaseError if another process holds the lease; LeaseLostError from ``confirm`` later.
    """
    holder = LeaseHolder(command, platform.node(), os.getpid(), datetime.now(UTC))
    if is_only_writer:
        yield _UncheckedLease()
    elif "://" in lake:
        with _hold_shared_lease(lake, holder, progress) as lease:
            yield lease
    else:
        with _hold_file_lock(lake, holder) as lease:
            yield lease


@contextmanager
def _hold_file_lock(lake: str, holder: LeaseHolder) -> Iterator[_FileLease]:
    path = Path(lake, "_checkpoints", "lease")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8", errors="replace") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock_file.seek(0)
            raise LeaseError(_describe_taken(lake, LeaseHolder.parse(lock_file.read()))) from error
        lock_file.truncate(0)
        lock_file.write(json.dumps(holder.document()))
        lock_file.flush()
        yield _FileLease(path, lock_file)


@contextmanager
def _hold_shared_lease(
    lake: str, holder: LeaseHolder, progress: Callable[[str], None]
) -> Iterator[SharedLease]:
    # obstore takes a tenth of a second to import, and a lake in a folder does not need it.
    from fleetgauge_core.lake.lease_objects import open_lease_objects

    try:
        lease = SharedLease(open_lease_objects(lake), holder, lambda: uptime_ns() / _NANOSECONDS)
        lease.acquire(lambda other: progress(f"waiting to see whether {other} still writes {lake}"))
    except LeaseTakenError as error:
        raise LeaseError(_describe_taken(lake, error.holder)) from error
    except StoreUnavailableError as error:
        raise LeaseError(f"{lake}: its lease cannot be taken: {error}") from error
    except NoConditionalWritesError as error:
        raise LeaseError(
            f"{lake}: its store has no conditional writes, so that a second writer could not be noticed "
            f"({error}): make sure that there is none, and give --only-writer"
        ) from error
    with renewing(lease):
        yield lease


def _describe_taken(lake: str, holder: LeaseHolder | None) -> str:
    by = f" by {holder}" if holder else ""
    return f"{lake}: another pipeline is writing this lake{by}; stop it first"
