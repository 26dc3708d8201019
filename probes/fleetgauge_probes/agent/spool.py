"""Records that wait on disk until the telemetry cluster has taken them.

One SQLite file, held by one agent for as long as it lives. What was kept survives a kill at any moment;
a power cut may take what the disk had not yet written, but leaves the file whole (write-ahead log,
synchronous=NORMAL).

A minute that is not over is kept too, as it stands every few seconds. Whoever opens the file after a
kill lets such minutes go out, so that a kill costs those seconds and no minute.
"""

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.contract import ProbeMinute

_FILE = "records.sqlite"
_VERSION = 1
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
#: Positions are never given twice (AUTOINCREMENT), totals are those of the closed records.
_MAKE = """
BEGIN;
CREATE TABLE records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (run_id, sequence)
);
CREATE TABLE totals (records INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER kept AFTER INSERT ON records WHEN new.closed BEGIN
    UPDATE totals SET records = records + 1, bytes = bytes + length(new.value);
END;
CREATE TRIGGER closed AFTER UPDATE OF closed ON records WHEN new.closed > old.closed BEGIN
    UPDATE totals SET records = records + 1, bytes = bytes + length(new.value);
END;
CREATE TRIGGER gone AFTER DELETE ON records WHEN old.closed BEGIN
    UPDATE totals SET records = records - 1, bytes = bytes - length(old.value);
END;
PRAGMA user_version = 1;
COMMIT;
"""
_KEEP = (
    "INSERT OR REPLACE INTO records (run_id, sequence, minute, closed, key, value) VALUES (?, ?, ?, ?, ?, ?)"
)
_DROP = (
    "DELETE FROM records WHERE position IN"
    " (SELECT position FROM records WHERE closed ORDER BY position LIMIT 100)"
)


class SpoolError(Exception):
    """The folder or its file cannot be used: one line that names it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A closed record. Positions grow in the order in which a run's records closed."""

    position: int
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class SpoolState:
    """What waits. ``oldest``: the minute of the record that is next; None where nothing waits."""

    records: int
    value_bytes: int
    oldest: datetime | None


class Spool:
    """Closed records in their order, open minutes as they stood last; threads may share it.

    ``max_bytes`` bounds the values that wait: beyond it the oldest closed records are dropped.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._lock = threading.Lock()

    def open(self) -> int:
        """Take the file over; how many minutes of a run that was killed wait now as they stood last.

        A damaged file is set aside beside the new one. Raises SpoolError: the folder cannot be written,
        another agent has the file, or a newer version made it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                return self._take_over()
            except sqlite3.DatabaseError as error:
                if _code(error) not in _DAMAGED:
                    raise
                _set_aside(self.folder)
                return self._take_over()
        except (OSError, sqlite3.Error) as error:
            raise SpoolError(f"{self.folder}: {_reason(error)}") from error

    def _take_over(self) -> int:
        connection = sqlite3.connect(self.folder / _FILE, timeout=0, check_same_thread=False)
        try:
            _prepare(connection)
            with connection:
                left_open = connection.execute("UPDATE records SET closed = 1 WHERE NOT closed").rowcount
        except sqlite3.Error:
            connection.close()
            raise
        self._connection = connection
        return left_open

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._connection.close()

    def keep(self, closed: Sequence[ProbeMinute], still_open: Sequence[ProbeMinute]) -> int:
        """All of them or none; how many of the oldest had to go for them.

        A record takes the place of what was kept of its minute before. Raises SpoolError when the disk
        does not take them.
        """
        rows = [_row(one, True) for one in closed] + [_row(one, False) for one in still_open]
        with self._used() as connection:
            connection.executemany(_KEEP, rows)
            return self._make_room(connection)

    def waiting(self, after: int, most: int) -> list[Waiting]:
        """The closed records after a position, oldest first. Raises SpoolError."""
        with self._used() as connection:
            rows = connection.execute(
                "SELECT position, key, value FROM records WHERE closed AND position > ?"
                " ORDER BY position LIMIT ?",
                (after, most),
            ).fetchall()
        return [Waiting(*row) for row in rows]

    def forget(self, positions: Iterable[int]) -> None:
        """These need not wait any longer. Raises SpoolError."""
        with self._used() as connection:
            connection.executemany("DELETE FROM records WHERE position = ?", ((p,) for p in positions))

    def state(self) -> SpoolState:
        """Raises SpoolError."""
        with self._used() as connection:
            records, value_bytes = _totals(connection)
            oldest = connection.execute(
                "SELECT minute FROM records WHERE closed ORDER BY position LIMIT 1"
            ).fetchone()
        return SpoolState(records, value_bytes, datetime.fromtimestamp(oldest[0], UTC) if oldest else None)

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        """One transaction, of one thread at a time."""
        try:
            with self._lock, self._connection:
                yield self._connection
        except sqlite3.Error as error:
            raise SpoolError(f"{self.folder}: {_reason(error)}") from error

    def _make_room(self, connection: sqlite3.Connection) -> int:
        dropped = 0
        while _totals(connection)[1] > self.max_bytes:
            dropped += connection.execute(_DROP).rowcount
        return dropped


def _prepare(connection: sqlite3.Connection) -> None:
    # For the kernel to hold the lock as long as the process lives, and to let go of it when it is killed.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(_MAKE)
    elif version != _VERSION:
        raise sqlite3.OperationalError(f"{_FILE} is of version {version}, this agent knows {_VERSION}")


def _totals(connection: sqlite3.Connection) -> tuple[int, int]:
    records, value_bytes = connection.execute("SELECT records, bytes FROM totals").fetchone()
    return records, value_bytes


def _reason(error: OSError | sqlite3.Error) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "another agent has it" if _code(error) == sqlite3.SQLITE_BUSY else str(error)


def _code(error: sqlite3.Error) -> int | None:
    """SQLite's; errors that Python raises itself have none."""
    return getattr(error, "sqlite_errorcode", None)


def _set_aside(folder: Path) -> None:
    """The file and its log, which must not be replayed into a new file."""
    at = time.time_ns()
    for path in list(folder.glob(f"{_FILE}*")):
        path.rename(folder / f"damaged-{at}-{path.name}")


def _row(record: ProbeMinute, closed: bool) -> tuple[str, int, int, bool, str, bytes]:
    minute_s = int(record.minute.timestamp())
    return record.run_id, record.sequence, minute_s, closed, record.cluster_id, record.encode()
