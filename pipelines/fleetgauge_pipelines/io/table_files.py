"""Data files of a large table: tasks read and write them, and the driver commits them.

A file that no commit names is invisible: what a task that failed has written is deleted by vacuum, once it
is older than the table's retention.
"""

import json
import math
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pa_dataset
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import storage_options

#: Characters of a text in a file's statistics, as in files that Spark writes.
_MAX_BOUND_LENGTH = 32
#: Follows a bound that was cut, so that it is above every text that begins with it.
_LAST_CHARACTER = "\U0010ffff"
#: Commits after which the state of a table is written as one file, from which on its log is read: every task
#: opens the tables that it reads. delta-rs itself does it after a hundred.
_CHECKPOINT_EVERY = 10
_POSITION = "__position"
#: Rows of a file that are in memory at a time while it is written again, and those that a scan yields.
_ROWS_AT_ONCE, _ROWS_OF_PART = 100_000, 20_000
#: Features of a table whose files do not have its rows as they are.
_NOT_IN_FILES = frozenset({"deletionVectors", "columnMapping"})
#: Spark cuts bounds of times to milliseconds.
_CUT = timedelta(milliseconds=1)
#: A row group of a file has at most so many rows: whole, its lists need not be put together.
_ROWS_OF_GROUP = 2**20
_DATA_FILE = re.compile(r"(?:day=\d{4}-\d\d-\d\d/)?part-[\w.-]+\.parquet")

#: Of a file without statistics, so many bytes are taken for a row.
_BYTES_A_ROW = 100

#: A column of the file, by its path in the table, from which a row has been read.
FILE = "__filename"


class DataFileError(OperationalError):
    """A data file of the lake cannot be read; the message is one line."""


class UnreadableTableError(OperationalError):
    """A table's log changes what its files have, in a way that is not supported."""


class TableChangedError(OperationalError):
    """Another process has changed a table between a read and a commit that rests on it."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table: its rows, and bounds of those columns that have any and are never NULL."""

    path: str
    day: date | None
    bytes: int
    rows: int
    lowest: Mapping[str, Any]
    highest: Mapping[str, Any]

    def overlaps(self, name: str, first: Any, last: Any) -> bool:
        """Return whether the file may have a row in which a column is in [first, last]."""
        return name not in self.lowest or (self.lowest[name] <= last and self.highest[name] >= first)

    def describe_rows(self) -> pc.Expression:
        """Return a condition that holds for each row of the file."""
        holds = pc.scalar(True) if self.day is None else pc.field("day") == self.day
        for name, lowest in self.lowest.items():
            holds &= (pc.field(name) >= lowest) & (pc.field(name) <= self.highest[name])
        return holds


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Files of a version of the table at a path or URI, as tasks read them."""

    location: str
    schema: pa.Schema
    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(file.rows for file in self.files)

    def of_days(self, days: Collection[date]) -> "TableFiles":
        """Return the files of some days of a table that is partitioned by day."""
        return self.select(lambda file: file.day in days)

    def only(self, file: TableFile) -> "TableFiles":
        """Return a single file."""
        return replace(self, files=(file,))

    def at(self, paths: Collection[str]) -> "TableFiles":
        """Return the files with some paths."""
        return self.select(lambda file: file.path in paths)

    def select(self, is_wanted: Callable[[TableFile], bool]) -> "TableFiles":
        """Return the files for which a condition holds."""
        return replace(self, files=tuple(filter(is_wanted, self.files)))

    def read(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return columns of the rows for which a condition holds; FILE is each row's file.

        A file is read fastest if its bounds say that the condition holds for all of its rows.

        Raises: DataFileError.
        """
        with naming_damaged_files(self.location):
            return self._scan(columns, where, _ROWS_OF_GROUP).to_table()

    def read_parts(self, columns: Sequence[str], where: pc.Expression | None = None) -> Iterator[pa.Table]:
        """Yield the same rows, at most 20,000 at a time.

        Raises: DataFileError.
        """
        with naming_damaged_files(self.location):
            for batch in self._scan(columns, where, _ROWS_OF_PART).to_batches():
                yield pa.Table.from_batches([batch])

    def _scan(
        self, columns: Sequence[str], where: pc.Expression | None, batch_rows: int
    ) -> pa_dataset.Scanner:
        sizes = {file.path: file.bytes for file in self.files}
        filesystem, format_ = open_filesystem(self.location, sizes), pa_dataset.ParquetFileFormat()
        fragments = [
            format_.make_fragment(file.path, filesystem, file.describe_rows()) for file in self.files
        ]
        dataset = pa_dataset.FileSystemDataset(fragments, self.schema, format_, filesystem)
        options = pa_dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        # Arrow itself would read sixteen batches ahead.
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}
        return dataset.scanner(
            list(columns), where, batch_size=batch_rows, fragment_scan_options=options, **ahead
        )


def list_files(
    delta: DeltaTable, location: str, bounded: Collection[str], days: Collection[date] | None
) -> TableFiles:
    """Return the files of a version, or those of some days, with the bounds of some columns.

    Raises: UnreadableTableError if rows of files are deleted or renamed by the table's log.
    """
    unreadable = _NOT_IN_FILES & set(delta.protocol().reader_features or ())
    if unreadable:
        raise UnreadableTableError(
            f"{location}: another writer has given the table {', '.join(sorted(unreadable))}, which cannot "
            "be read here: purge and remove this feature, or restore the table from a backup"
        )
    actions = pa.table(delta.get_add_actions(flatten=True))
    wanted = {"path", "partition.day", "size_bytes", "num_records"}
    wanted |= {f"{key}.{name}" for key in ("min", "max", "null_count") for name in bounded}
    actions = actions.select([name for name in actions.column_names if name in wanted])
    if days is not None:
        actions = actions.filter(pc.is_in(actions["partition.day"], pa.array(list(days), pa.date32())))
    schema = pa.schema(delta.schema().to_arrow())
    return TableFiles(location, schema, tuple(_describe_file(row, bounded) for row in actions.to_pylist()))


def _describe_file(action: Mapping[str, Any], bounded: Collection[str]) -> TableFile:
    rows, bounds = action["num_records"], {}
    for name in bounded:
        lowest, highest, nulls = (action.get(f"{key}.{name}") for key in ("min", "max", "null_count"))
        if lowest is not None and highest is not None and nulls == 0:
            bounds[name] = lowest, highest + _CUT if isinstance(highest, datetime) else highest
    return TableFile(
        action["path"],
        action.get("partition.day"),
        action["size_bytes"],
        action["size_bytes"] // _BYTES_A_ROW if rows is None else rows,
        {name: lowest for name, (lowest, _) in bounds.items()},
        {name: highest for name, (_, highest) in bounds.items()},
    )


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a table, of a day if it is partitioned; ``stats`` are Delta's statistics of its columns."""

    path: str
    day: date | None
    bytes: int
    rows: int
    stats: str

    def to_action(self) -> AddAction:
        """Return the entry of a commit that adds the file."""
        now_ms = time.time_ns() // 1_000_000
        return AddAction(self.path, self.bytes, _partition(self.day), now_ms, True, self.stats)


def _partition(day: date | None) -> dict[str, str | None]:
    return {} if day is None else {"day": str(day)}


def open_filesystem(location: str, sizes: Mapping[str, int] | None = None) -> pa_fs.FileSystem:
    """Return the folder of a table, local or in an object store; credentials come from the environment.

    ``sizes`` are those of files, in bytes, which an object store then need not be asked for.
    """
    if "://" not in location:
        return pa_fs.SubTreeFileSystem(location, pa_fs.LocalFileSystem())
    return pa_fs.PyFileSystem(DeltaStorageHandler(location, storage_options(location), dict(sizes or {})))


@contextmanager
def naming_damaged_files(location: str) -> Iterator[None]:
    """Raise DataFileError in place of an error about a data file that is damaged or gone."""
    try:
        yield
    except (OSError, pa.ArrowException, DeltaError) as error:
        if file := _DATA_FILE.search(unquote(str(error))):
            raise DataFileError(describe_damaged_file(f"{location}/{file[0]}")) from error
        raise


def describe_damaged_file(path: str) -> str:
    """Return in one line what is wrong with a data file, and how to mend it."""
    return f"{path} is damaged or gone: restore the table from a backup, or run `fleetgauge lake repair`"


def commit_files(delta: DeltaTable, files: Iterable[WrittenFile], removed: Collection[str] = ()) -> None:
    """Add files to a table, and remove others by their paths, in one commit.

    Raises: TableChangedError if a file to remove is not in the table any more.
    """
    actions: list[AddAction | RemoveAction] = [file.to_action() for file in files]
    actions += _list_removals(delta, removed)
    schema, partitions = pa.schema(delta.schema().to_arrow()), delta.metadata().partition_columns
    # Without a file to remove, the commit rests on no other one, and may come after any.
    properties = CommitProperties(max_commit_retries=0) if removed else None
    delta.create_write_transaction(actions, "append", schema, partitions, commit_properties=properties)
    delta.update_incremental()
    if delta.version() % _CHECKPOINT_EVERY == 0:
        delta.create_checkpoint()


def _list_removals(delta: DeltaTable, removed: Collection[str]) -> list[RemoveAction]:
    if not removed:
        return []
    now_ms = time.time_ns() // 1_000_000
    present = pa.table(delta.get_add_actions(flatten=True))
    going = present.filter(pc.is_in(present["path"], pa.array(sorted(removed), pa.string()))).to_pylist()
    if len(going) != len(set(removed)):
        raise TableChangedError(
            f"{delta.table_uri}: another process has replaced files meanwhile: run only one writer of a lake"
        )
    return [
        RemoveAction(row["path"], True, now_ms, row["size_bytes"], _partition(row.get("partition.day")))
        for row in going
    ]


def write_files(location: str, rows: pa.Table) -> list[WrittenFile]:
    """Write rows of a table, a file for each day if it is partitioned by day, and return the files."""
    if "day" not in rows.column_names:
        return _write_file(location, None, [rows], rows.schema)
    content = rows.schema.remove(rows.schema.get_field_index("day"))
    days = pc.unique(rows["day"]).to_pylist()
    return [
        file
        for day in sorted(days)
        for file in _write_file(
            location,
            day,
            [(rows if len(days) == 1 else rows.filter(pc.equal(rows["day"], day))).select(content.names)],
            content,
        )
    ]


def rewrite_file(location: str, path: str, key: Sequence[str], removed: pa.Table) -> list[WrittenFile]:
    """Write a file again without the rows that have one of some keys; return no file if none is left.

    Raises: DataFileError.
    """
    with naming_damaged_files(location), open_filesystem(location).open_input_file(unquote(path)) as file:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
        keys = removed.select(list(key))
        parts = (
            _drop_rows(pa.Table.from_batches([batch]), keys) for batch in parquet.iter_batches(_ROWS_AT_ONCE)
        )
        folder = unquote(path).split("/")[0]
        day = date.fromisoformat(folder.removeprefix("day=")) if folder.startswith("day=") else None
        return _write_file(location, day, parts, parquet.schema_arrow)


def _drop_rows(rows: pa.Table, keys: pa.Table) -> pa.Table:
    names = keys.column_names
    positions = rows.select(names).append_column(_POSITION, pa.array(range(rows.num_rows), pa.int64()))
    kept = positions.join(keys, names, join_type="left anti")[_POSITION]
    return rows.take(kept.combine_chunks().sort())


def _write_file(
    location: str, day: date | None, parts: Iterable[pa.Table], schema: pa.Schema
) -> list[WrittenFile]:
    """Write parts to one file; return no file if they have no row."""
    filesystem = open_filesystem(location)
    path = f"part-{uuid.uuid4()}.snappy.parquet"
    if day is not None:
        folder = f"day={day}"
        filesystem.create_dir(folder, recursive=True)
        path = f"{folder}/{path}"
    statistics = _Statistics()
    writer = None
    try:
        for part in parts:
            if part.num_rows:
                writer = writer or pq.ParquetWriter(
                    path, schema, filesystem=filesystem, store_schema=False, write_page_checksum=True
                )
                writer.write_table(part)
                statistics.add(part)
    finally:
        if writer:
            writer.close()
    if not writer:
        return []
    size = filesystem.get_file_info(path).size
    return [WrittenFile(path, day, size, statistics.rows, statistics.to_json())]


@dataclass(slots=True)
class _Statistics:
    """Delta's statistics of a file: the number of rows, bounds and NULLs of its plain columns."""

    rows: int = 0
    nulls: dict[str, int] = field(default_factory=dict)
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        """Add further rows of the file."""
        self.rows += rows.num_rows
        for name in rows.column_names:
            column = rows[name]
            if pa.types.is_nested(column.type):
                continue
            self.nulls[name] = self.nulls.get(name, 0) + column.null_count
            if not pa.types.is_binary(column.type):
                lowest, highest = pc.min_max(column).as_py().values()
                if lowest is not None:
                    before = self.bounds.get(name, (lowest, highest))
                    self.bounds[name] = min(lowest, before[0]), max(highest, before[1])

    def to_json(self) -> str:
        """Return the statistics as a commit has them."""
        # Readers take a column without bounds for one without a value. JSON has no infinite numbers.
        bounds = {name: both for name, both in self.bounds.items() if not any(map(_is_infinite, both))}
        stats = {
            "numRecords": self.rows,
            "minValues": {name: _to_json(lowest) for name, (lowest, _) in bounds.items()},
            "maxValues": {name: _to_json(_cut_above(highest)) for name, (_, highest) in bounds.items()},
            "nullCount": self.nulls,
        }
        # delta-rs misreads the escapes of characters that JSON needs two of for.
        return json.dumps(stats, ensure_ascii=False)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cut_above(value: Any) -> Any:
    """Return a bound that is not below a value; times in statistics have whole milliseconds."""
    if isinstance(value, str) and len(value) > _MAX_BOUND_LENGTH:
        bound = value[:_MAX_BOUND_LENGTH] + _LAST_CHARACTER
        while bound < value:
            bound += _LAST_CHARACTER
        return bound
    if isinstance(value, datetime):
        return value + timedelta(microseconds=-value.microsecond % 1000)
    return value


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, str):
        return value if value.endswith(_LAST_CHARACTER) else value[:_MAX_BOUND_LENGTH]
    return value.isoformat() if isinstance(value, date) else value
