"""Open Delta tables with delta-rs.

Credentials and endpoints of object stores come from the environment variables of delta-rs (``AWS_...``).
"""

import errno
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.lake_files import open_files
from fleetgauge_core.lake.log_damage import LOG_FOLDER, find_empty_commit, read_log_state
from fleetgauge_core.lake.newest_version import (
    NewestVersion,
    describe_version,
    read_newest_version,
    write_newest_version,
)
from fleetgauge_core.tables import Table

_log = logging.getLogger("fleetgauge.lake")

#: delta-rs 1.6 decodes escapes in local paths, takes a backslash for a slash, and panics at the others; Delta
#: for Spark puts the path between backticks.
_UNUSABLE_IN_PATHS = re.compile(r"%[0-9A-Fa-f]{2}|[`\[\]|\\\x00-\x1f\x7f]")


_MEND = "restore the table from a backup, or run `fleetgauge lake repair`"


class LakePathError(OperationalError, DeltaError):
    """A lake cannot be at this path."""


class DamagedTableError(OperationalError, DeltaError):
    """A file of a table's log is damaged or gone, so that its newest rows cannot be read."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: {_MEND}")
        self.problem = problem


#: Exceptions of delta-rs and Arrow for a table that cannot be read or written.
DELTA_ERRORS = (DeltaError, pa.ArrowException, OSError)

#: By default, delta-rs retries for three minutes, which is too long for a dashboard or a command.
_RETRY_OPTIONS: Mapping[str, str] = {"max_retries": "3", "retry_timeout": "10s", "connect_timeout": "5s"}

#: Explanations of object store errors by pattern; the first match wins. The original texts are not shown,
#: because they may contain an access key.
_EXPLANATIONS: tuple[tuple[str, str], ...] = (
    ("NoSuchBucket", "the bucket does not exist: check the URI of the lake"),
    (
        "URL scheme is not allowed|BadScheme",
        "plain HTTP is not allowed: set AWS_ALLOW_HTTP=true, or use an https endpoint",
    ),
    ("169\\.254\\.169\\.254", "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    (
        "InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|40[13] \\w+",
        "the object store rejects the credentials: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
        "AWS_SESSION_TOKEN and their permissions",
    ),
    (
        "client error \\(Connect\\)|dns error|operation timed out|error sending request",
        "the object store does not respond: check AWS_ENDPOINT_URL, AWS_REGION and the network",
    ),
)
_WRITE_REFUSED = re.compile(
    r"AccessDenied|403 Forbidden|AuthorizationPermissionMismatch|\(os error (?:1|13|30)\)"
)
#: What delta-rs and Arrow say of a file of the log or of the data that is cut, empty or gone.
_DAMAGE = re.compile(
    r"Invalid Checkpoint|Corrupt footer|Json error|at line \d+ column \d+|Parquet magic bytes"
    r"|Parquet file size|\.parquet not found|Requested range was invalid"
)
_ANSI_COLOUR = re.compile("\x1b\\[[0-9;]*m")
#: Start of the part that is cut off: a stack trace of delta-rs or an XML document of the object store.
_DETAILS = re.compile(r"\s0: |<\?xml|<Error>")
_MAX_LENGTH = 240


def open_table(lake: str, table: Table) -> DeltaTable | None:
    """Return the newest version of a table, or None if the table does not exist.

    Raises: one of DELTA_ERRORS if the table cannot be read; DamagedTableError, which is one of them, if a
    file of its log is damaged, or if the newest version is gone.
    """
    location = table_uri(lake, table)
    _ensure_readable(location)
    # Read first, so that a commit between the two is newer than the stored version, and not missing.
    stored = read_newest_version(lake, table)
    try:
        delta = _open(location)
    except TableNotFoundError:
        if stored and not DeltaTable.is_deltatable(location, storage_options=storage_options(location)):
            raise _describe_lost_log(stored) from None
        return None
    except DELTA_ERRORS as error:
        if damage := read_log_state(open_files(lake), table.path).damage:
            raise DamagedTableError(str(damage[0])) from error
        raise
    try:
        ensure_newest(lake, table, delta, stored)
    except DamagedTableError:
        # A file system between may show the version before the commit.
        delta = _open(location)
        ensure_newest(lake, table, delta, stored)
    return delta


def _open(location: str) -> DeltaTable:
    with panic_as_damage():
        return DeltaTable(location, storage_options=storage_options(location))


@contextmanager
def panic_as_damage() -> Iterator[None]:
    """Raise DamagedTableError where delta-rs panics, as it does at some damaged checkpoints."""
    try:
        yield
    except BaseException as error:
        # Its class cannot be imported, and is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise DamagedTableError(f"{LOG_FOLDER} cannot be read") from error


def ensure_newest(lake: str, table: Table, delta: DeltaTable, stored: NewestVersion | None) -> None:
    """Check that the version that has been opened lacks no commit; ``stored`` was read before it was opened.

    Raises: DamagedTableError; OSError if the lake does not answer.
    """
    version = delta.version()
    if stored is None or stored.table_id != str(delta.metadata().id) or stored.version < version:
        # Nobody has stored this version yet. To delta-rs, an empty commit is whole.
        if empty := find_empty_commit(open_files(lake), table.path):
            raise DamagedTableError(str(empty))
        return
    if describe_version(delta) == stored:
        return
    damaged = read_log_state(open_files(lake), table.path).damaged_commits
    if damaged:
        raise DamagedTableError(str(damaged[0]))
    problem = f"ends with version {version}" if version < stored.version else "has other files"
    raise DamagedTableError(f"{LOG_FOLDER} {problem}, but version {stored.version} was written")


def store_newest_version(lake: str, table: Table, delta: DeltaTable | None = None) -> None:
    """Store the version that has just been committed; without ``delta``, by Spark, it is opened.

    The commit stands whether or not it can be stored here, so that an error is only logged.
    """
    try:
        write_newest_version(lake, table, describe_version(delta or _open(table_uri(lake, table))))
    except DELTA_ERRORS as error:
        _log.warning(
            "%s: the version of a commit cannot be stored, and its loss might not be noticed: %s",
            table.path,
            describe_table_error(error),
        )


def table_exists(lake: str, table: Table) -> bool:
    """Return whether the folder of a table contains a Delta log.

    Raises: one of DELTA_ERRORS if the lake cannot be read; DamagedTableError if the log is gone.
    """
    location = table_uri(lake, table)

    def has_log() -> bool:
        return DeltaTable.is_deltatable(location, storage_options=storage_options(location))

    if has_log():
        return True
    _ensure_readable(location)
    stored = read_newest_version(lake, table)
    # It may have been created between the two.
    if stored and not has_log():
        raise _describe_lost_log(stored)
    return stored is not None


def _describe_lost_log(stored: NewestVersion) -> DamagedTableError:
    return DamagedTableError(f"{LOG_FOLDER} is gone, but version {stored.version} was written")


def _ensure_readable(location: str) -> None:
    """Check the nearest folder that exists: to delta-rs, a table that it may not read does not exist.

    Raises: PermissionError, NotADirectoryError.
    """
    if "://" in location:
        return
    path = Path(location).absolute()
    folder = next(folder for folder in (path, *path.parents) if os.access(folder, os.F_OK))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder))
    if not os.access(folder, os.R_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "not readable for this user", str(folder))


def is_read_only(lake: str, table: Table) -> bool:
    """Return whether this process may not write a table in a folder: by its mount, its owner or its mode.

    Of a table that does not exist yet, the nearest folder counts. Whether an object store accepts writes is
    only known when it is tried, so that the result is False.

    Raises: LakePathError.
    """
    location = table_uri(lake, table)
    if "://" in location:
        return False
    path = Path(location).absolute()
    nearest = next(folder for folder in (path, *path.parents) if os.access(folder, os.F_OK))
    folders = [folder for folder in (nearest, path / "_delta_log") if os.access(folder, os.F_OK)]
    return not all(os.access(folder, os.W_OK | os.X_OK, effective_ids=True) for folder in folders)


def is_write_refused(error: Exception) -> bool:
    """Return whether a failed write was refused for good: the store or the file system permits no write."""
    return _WRITE_REFUSED.search(str(error)) is not None


def table_uri(lake: str, table: Table) -> str:
    """Return the path or URI of a table.

    Raises: LakePathError, which is one of DELTA_ERRORS, for a path that Delta takes for another one.
    """
    ensure_usable_path(lake)
    return f"{lake.rstrip('/')}/{table.path}"


def ensure_usable_path(lake: str) -> None:
    """Check that a lake can be in this folder. Raises: LakePathError."""
    if "://" not in lake and (unusable := _UNUSABLE_IN_PATHS.search(str(Path(lake).absolute()))):
        raise LakePathError(
            f"{lake}: the path of a lake cannot contain {unusable[0]!r}, which Delta takes for something "
            "else: choose another folder"
        )


def storage_options(location: str) -> dict[str, str] | None:
    """Return the retry limits and timeouts for a table in an object store; None for a local path."""
    return dict(_RETRY_OPTIONS) if "://" in location else None


def describe_table_error(error: Exception) -> str:
    """Explain in one line, without secrets, why a table cannot be read or written."""
    text = " ".join(_ANSI_COLOUR.sub("", str(error)).split())
    for pattern, explanation in _EXPLANATIONS:
        if re.search(pattern, text):
            return explanation
    summary = _DETAILS.split(text)[0].strip() or type(error).__name__
    summary = summary if len(summary) <= _MAX_LENGTH else summary[: _MAX_LENGTH - 1] + "…"
    return f"{summary}: {_MEND}" if _DAMAGE.search(text) and _MEND not in text else summary
