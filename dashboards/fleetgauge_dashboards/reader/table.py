"""Read one Delta table and cache what was read until the table's version changes.

LakeError
└── UnreadableError    the table exists but cannot be read
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from datetime import date, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import (
    DELTA_ERRORS,
    describe_table_error,
    ensure_newest,
    open_table,
    table_exists,
)
from fleetgauge_core.lake.newest_version import read_newest_version
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.arrow_schema import ARROW_TYPES

#: A pyarrow.compute.Expression; pyarrow has no type hints.
RowFilter = Any
#: Column, comparison and value as text. A file is read if its statistics can satisfy all of them.
FilePredicates = Sequence[tuple[str, str, str]]
Row = dict[str, Any]
T = TypeVar("T")

#: Cached queries per table: about what a few dozen open pages ask for.
MAX_CACHED_QUERIES = 64
#: Bytes of the cached queries of a table; a week of a large cluster's minutes is 10 MB.
MAX_CACHED_BYTES = 64_000_000


class LakeError(OperationalError):
    """A problem of the lake that is reported to the user in one line."""


class UnreadableError(LakeError):
    """The table exists but cannot be read; the message is one line with its path and the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class TableReader:
    """A reader of one table, safe for threads: concurrent callers of a query share one read."""

    def __init__(
        self,
        lake: str,
        table: Table,
        check_interval_s: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = table
        self._lake = lake
        self._check_interval_s = check_interval_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._delta: DeltaTable | None = None
        self._checked_at = float("-inf")
        self._at: tuple[str, int] | None = None
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()

    def version(self) -> int | None:
        """Return the table's newest version; None while there is no table."""
        with self._lock:
            delta = self._retry_once(self._open_newest)
            return None if delta is None else delta.version()

    def read_cached(self, query: Hashable, read: Callable[[DeltaTable], T], empty: T) -> T:
        """Return what ``read`` returns for the newest version; ``empty`` while there is no table.

        ``query`` is the key under which the answer is cached.
        """
        with self._lock:
            return self._retry_once(lambda: self._read_newest(query, read, empty))

    def _read_newest(self, query: Hashable, read: Callable[[DeltaTable], T], empty: T) -> T:
        delta = self._open_newest()
        if delta is None:
            return empty
        at = (str(delta.metadata().id), delta.version())
        if at != self._at:
            self._answers.clear()
            self._at = at
        if query not in self._answers:
            self._answers[query] = read(delta)
        self._answers.move_to_end(query)
        while len(self._answers) > 1 and (
            len(self._answers) > MAX_CACHED_QUERIES or self._cached_bytes() > MAX_CACHED_BYTES
        ):
            self._answers.popitem(last=False)
        value: T = self._answers[query]
        return value

    def _cached_bytes(self) -> int:
        """Return the size of the cached Arrow tables, which are the large answers."""
        return sum(answer.nbytes for answer in self._answers.values() if isinstance(answer, pa.Table))

    def read_columns(
        self, delta: DeltaTable, names: tuple[str, ...], where: RowFilter = None, files: FilePredicates = ()
    ) -> pa.Table:
        """Return the named columns; a column that the table does not have yet is all null.

        ``where`` selects rows. ``files`` selects files by partition and by the statistics in the log, because
        a table of a thousand files takes a second to open as a whole.
        """
        existing = {field.name for field in delta.schema().fields}
        applicable = [predicate for predicate in files if predicate[0] in existing]
        dataset = delta.to_pyarrow_dataset(file_pruning_predicate=applicable or None)
        present = [name for name in names if name in dataset.schema.names]
        table = dataset.to_table(columns=present, filter=where)
        for position, name in enumerate(names):
            if name not in present:
                table = table.add_column(position, name, pa.nulls(len(table), self._type(name)))
        return table

    def read_newest_days(self, names: tuple[str, ...], days: int) -> pa.Table:
        """Return the named columns of a table partitioned by day, in no order.

        Rows are of the newest day and the ``days`` days before it.
        """

        def read(delta: DeltaTable) -> pa.Table:
            newest = max((entry["day"] for entry in delta.partitions() if entry["day"]), default=None)
            if newest is None:
                return self.read_columns(delta, names)
            since = date.fromisoformat(str(newest)) - timedelta(days=days)
            return self.read_columns(delta, names, column("day") >= since, [("day", ">=", f"{since}")])

        return self.read_cached((names, days), read, self.empty_table(names))

    def read_rows(self, query: Hashable, where: RowFilter = None) -> list[Row]:
        """Return whole rows of a small table."""

        def read(delta: DeltaTable) -> list[Row]:
            rows: list[Row] = self.read_columns(delta, self.table.column_names, where).to_pylist()
            return rows

        return self.read_cached(query, read, [])

    def empty_table(self, names: tuple[str, ...]) -> pa.Table:
        """Return a table of the named columns without rows."""
        return pa.schema([(name, self._type(name)) for name in names]).empty_table()

    def _type(self, name: str) -> pa.DataType:
        return next(ARROW_TYPES[column.type] for column in self.table.columns if column.name == name)

    def _open_newest(self) -> DeltaTable | None:
        now = self._monotonic()
        if now - self._checked_at < self._check_interval_s:
            return self._delta
        if self._delta is None:
            self._delta = open_table(self._lake, self.table)
        elif table_exists(self._lake, self.table):
            opened, stored = self._delta.version(), read_newest_version(self._lake, self.table)
            self._delta.update_incremental()
            if self._delta.version() != opened:
                ensure_newest(self._lake, self.table, self._delta, stored)
        else:
            # The table was deleted while open: cached answers are no longer valid.
            self._forget()
        self._checked_at = now
        return self._delta

    def _retry_once(self, step: Callable[[], T]) -> T:
        """Run ``step`` up to twice, since the table may have been vacuumed or recreated in between.

        Raises: UnreadableError when the second attempt fails too.
        """
        try:
            return step()
        except DELTA_ERRORS:
            self._forget()
        try:
            return step()
        except DELTA_ERRORS as error:
            self._forget()
            raise UnreadableError(self.table.path, describe_table_error(error)) from error

    def _forget(self) -> None:
        self._delta = None
        self._checked_at = float("-inf")
        self._answers.clear()


def read_once(
    lake: str,
    table: Table,
    where: RowFilter = None,
    names: tuple[str, ...] | None = None,
    files: FilePredicates = (),
) -> pa.Table:
    """Return the rows that the filter keeps, with all columns or the named ones.

    Empty while there is no table. Nothing is cached.
    """
    reader, columns = TableReader(lake, table), names or table.column_names
    return reader.read_cached(
        "once", lambda delta: reader.read_columns(delta, columns, where, files), reader.empty_table(columns)
    )


def column(name: str) -> RowFilter:
    """Return a column for use in a filter; a filter on a partition column also selects files."""
    return ds.field(name)
