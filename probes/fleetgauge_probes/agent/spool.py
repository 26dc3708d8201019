"""Durable queue of probe minutes on disk until the telemetry cluster has acknowledged them.

The spool is one SQLite file, locked by one agent for as long as it lives. Stored records survive a kill at
any moment; a power failure may lose what the disk had not yet written, but leaves the file consistent
(write-ahead log, synchronous=NORMAL).

Open minutes are stored too, as interim records every few seconds. The run that opens the file after a kill
forwards them as they are, so a kill costs those seconds instead of whole minutes.

A damaged file is renamed, and a new one begun, when it is opened or where the damage is met later. Damage in
the bytes of a record is not noticed here: the record is forwarded, and the stream puts it into quarantine if
it is none any more.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.errors import OperationalError

_log = logging.getLogger("fleetgauge.records")

_FILE = "records.sqlite"
_VERSION = 1
_DAMAGE_CODES = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
#: Positions are never reused (AUTOINCREMENT); the totals cover closed records only.
_CREATE_SCHEMA = """
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
#: Damage of a row may have changed the types of its values.
_READ_CLOSED = (
    "SELECT position, CAST(key AS TEXT), coalesce(CAST(value AS BLOB), x'') FROM records"
    " WHERE closed AND position > ? ORDER BY position LIMIT ?"
)
_READ_OLDEST = (
    "SELECT CAST(minute AS INTEGER) FROM records"
    " WHERE closed AND CAST(minute AS INTEGER) BETWEEN 0 AND ? ORDER BY position LIMIT 1"
)
_LAST_MINUTE_S = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())
_COUNT_TOTALS = (
    "UPDATE totals SET (records, bytes) ="
    " (SELECT count(*), coalesce(sum(length(value)), 0) FROM records WHERE closed)"
)
_STORE_RECORD = (
    "INSERT OR REPLACE INTO records (run_id, sequence, minute, closed, key, value) VALUES (?, ?, ?, ?, ?, ?)"
)
_DROP_OLDEST = (
    "DELETE FROM records WHERE position IN"
    " (SELECT position FROM records WHERE closed ORDER BY position LIMIT 100)"
)


class SpoolError(OperationalError):
    """The spool folder or its file cannot be used; the message is one line that names it."""


class _FoundDamageError(sqlite3.DatabaseError):
    """SQLite's check has found damage; the message says which."""


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """A closed record. Positions increase in the order in which a run's records were closed."""

    position: int
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class SpoolState:
    """The closed records in the spool; ``oldest`` is the minute of the first one, None if there are none."""

    records: int
    value_bytes: int
    oldest: datetime | None


class Spool:
    """Closed records in order, and the latest interim records of open minutes. Safe for use by threads.

    ``max_bytes`` limits the size of the closed records: beyond it the oldest ones are dropped.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Prepare a spool in ``folder``; ``open`` creates it."""
        self.folder = folder
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._is_damaged = False
        self._last_read = 0

    def open(self) -> int:
        """Lock the file and return how many open minutes a killed run left; they are now closed.

        A damaged file is renamed and replaced by a new one. Raises: SpoolError when the folder cannot be
        written, another agent has locked the file, or a newer version created it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                return self._connect()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _is_damage(error):
                    raise
                return self._begin_again()
        except (OSError, sqlite3.Error) as error:
            raise SpoolError(f"{self.folder}: {_describe_error(error)}") from error

    def _begin_again(self) -> int:
        """Rename the damaged file, and begin a new one of which no position was read before."""
        renamed = _rename_damaged_files(self.folder)
        _log.error("the spool was damaged: it is now %s, and its records are lost", renamed)
        left_open = self._connect()
        with self._connection:
            self._connection.execute("INSERT INTO sqlite_sequence VALUES ('records', ?)", (self._last_read,))
        self._is_damaged = False
        return left_open

    def _connect(self) -> int:
        connection = sqlite3.connect(self.folder / _FILE, timeout=0, check_same_thread=False)
        # Bytes of a key that are no text must not hold up the records behind it.
        connection.text_factory = lambda data: data.decode(errors="replace")
        try:
            _prepare(connection)
            with connection:
                left_open = connection.execute("UPDATE records SET closed = 1 WHERE NOT closed").rowcount
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        self._connection = connection
        return left_open

    def close(self) -> None:
        """Close the file and release its lock."""
        with self._lock:
            self._connection.close()

    def store(self, closed: Sequence[ProbeMinute], still_open: Sequence[ProbeMinute]) -> int:
        """Store records in one transaction and return how many of the oldest were dropped for them.

        A record replaces the earlier record of the same minute. Raises: SpoolError when they cannot be
        written.
        """
        rows = [_to_row(record, True) for record in closed] + [
            _to_row(record, False) for record in still_open
        ]
        with self._transaction() as connection:
            connection.executemany(_STORE_RECORD, rows)
            return self._drop_excess(connection)

    def read_closed(self, after: int, limit: int) -> list[SpooledRecord]:
        """Return up to ``limit`` closed records after a position, oldest first. Raises: SpoolError."""
        with self._transaction() as connection:
            rows = connection.execute(_READ_CLOSED, (after, limit)).fetchall()
            self._last_read = max([self._last_read, *(position for position, *_ in rows)])
        return [SpooledRecord(*row) for row in rows]

    def remove(self, positions: Iterable[int]) -> None:
        """Delete the records at these positions. Raises: SpoolError."""
        with self._transaction() as connection:
            connection.executemany(
                "DELETE FROM records WHERE position = ?", ((position,) for position in positions)
            )

    def read_state(self) -> SpoolState:
        """Return the number, size and age of the closed records. Raises: SpoolError."""
        with self._transaction() as connection:
            records, value_bytes = _read_totals(connection)
            oldest = connection.execute(_READ_OLDEST, (_LAST_MINUTE_S,)).fetchone()
        return SpoolState(records, value_bytes, datetime.fromtimestamp(oldest[0], UTC) if oldest else None)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction, to one thread at a time."""
        with self._lock:
            try:
                if self._is_damaged:
                    self._begin_again()
                with self._connection:
                    yield self._connection
            except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
                if _is_damage(error):
                    # The next use begins a new file; what was to be stored is stored again then.
                    self._connection.close()
                    self._is_damaged = True
                raise SpoolError(f"{self.folder}: {_describe_error(error)}") from error

    def _drop_excess(self, connection: sqlite3.Connection) -> int:
        dropped = 0
        while True:
            _, value_bytes = _read_totals(connection)
            if value_bytes <= self.max_bytes:
                return dropped
            dropped += connection.execute(_DROP_OLDEST).rowcount


def _prepare(connection: sqlite3.Connection) -> None:
    # The kernel holds the lock for as long as the process lives and releases it if the process is killed.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    schema = _read_schema(connection)
    if version == 0 and not schema:
        connection.executescript(_CREATE_SCHEMA)
    elif version not in (0, _VERSION):
        raise sqlite3.OperationalError(
            f"{_FILE} has version {version}, but this agent supports version {_VERSION}"
        )
    elif version != _VERSION or schema != _build_schema():
        raise _FoundDamageError("another schema than that of its version")
    # Damage that is read only later would stop the records behind it for good. 1 GiB takes a second.
    (finding,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if finding != "ok":
        raise _FoundDamageError(finding)
    connection.execute(_COUNT_TOTALS)


def _read_schema(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    # Damaged values may be of other types, which cannot be sorted.
    return sorted(map(repr, rows))


def _build_schema() -> list[str]:
    """Return the schema of a new file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_CREATE_SCHEMA)
        return _read_schema(connection)


def _read_totals(connection: sqlite3.Connection) -> tuple[int, int]:
    records, value_bytes = connection.execute("SELECT records, bytes FROM totals").fetchone()
    return records, value_bytes


def _describe_error(error: OSError | sqlite3.Error | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "its file is damaged"
    return "another agent uses it" if _error_code(error) == sqlite3.SQLITE_BUSY else str(error)


def _error_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's error code; errors that Python's sqlite3 module raises itself have none."""
    return getattr(error, "sqlite_errorcode", None)


def _is_damage(error: Exception) -> bool:
    """Return whether an error says that the file is damaged; SQLite's own message may be no text then."""
    if isinstance(error, sqlite3.Error):
        # The code has more bits that say which kind of damage it is.
        code = (_error_code(error) or sqlite3.SQLITE_OK) & 0xFF
        return isinstance(error, _FoundDamageError) or code in _DAMAGE_CODES
    return isinstance(error, UnicodeDecodeError)


def _rename_damaged_files(folder: Path) -> Path:
    """Rename the file together with its write-ahead log, which must not be replayed into a new file."""
    prefix = f"damaged-{time.time_ns()}-"
    for path in list(folder.glob(f"{_FILE}*")):
        path.rename(folder / f"{prefix}{path.name}")
    return folder / f"{prefix}{_FILE}"


def _to_row(record: ProbeMinute, closed: bool) -> tuple[str, int, int, bool, str, bytes]:
    minute_s = int(record.minute.timestamp())
    return record.run_id, record.sequence, minute_s, closed, record.cluster_id, record.encode()
