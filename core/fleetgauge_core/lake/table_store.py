"""Small tables of a lake, read and written by delta-rs without a JVM.

A small table is one whose changed rows a process holds in memory. Every write
is a single Delta commit on top of the version that was just read; if another
writer commits first, the table is read again and the write is repeated.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import (
    DELTA_ERRORS,
    describe_table_error,
    is_read_only,
    is_write_refused,
    open_table,
    storage_options,
    store_newest_version,
    table_exists,
    table_uri,
)
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_core.tables.row_diff import RowOperation, apply_differences, diff_rows

TableRow = dict[str, Any]

#: Other processes may write rows at the same time; of two concurrent commits, Delta accepts one.
_ATTEMPTS = 10
#: Spark and every reader must be able to read the table, so these Delta features stay off.
_PROPERTIES: Mapping[str, str] = {
    "delta.enableDeletionVectors": "false",
    "delta.checkpointPolicy": "classic",
}

#: The rows whose columns have one of these values; dates, strings or integers.
Scope = Mapping[str, Collection[Any]]


class TableStoreError(OperationalError):
    """The table does not exist, or cannot be read or written; the message is one line."""


class ReadOnlyLakeError(TableStoreError):
    """The lake cannot be written by this process or with these credentials."""


class StaleProgressError(Exception):
    """The table has other progress than its writer expects, because another process has written it."""


class TableStore:
    """One table of a lake.

    ``create``: whether the table is created by its first write and is empty until then;
    otherwise a missing table is an error, so that a mistyped path does not become a lake. ``confirm`` is
    called before each commit, and raises an error if nothing may be committed any more.

    Every method raises TableStoreError when the table is missing or cannot be read or written.
    """

    def __init__(
        self,
        lake: str,
        table: Table,
        *,
        create: bool = False,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        self._lake = lake
        self._table = table
        self._uri = table_uri(lake, table)
        self._schema = arrow_schema(table)
        self._create_missing = create
        self._confirm = confirm

    def rows(self, where: Any = None, columns: Sequence[str] = ()) -> list[TableRow]:
        """Return the rows that match a pyarrow expression, in no order; all columns unless some are named.

        Times are aware and in UTC, maps are dicts. A column that an older table lacks is NULL.
        """
        rows: list[TableRow] = self.frame(where, columns).to_pylist(maps_as_pydicts="strict")
        return rows

    def frame(self, where: Any = None, columns: Sequence[str] = ()) -> pa.Table:
        """Return the rows that match a pyarrow expression as an Arrow table, for many rows; see ``rows``."""
        names = columns or self._table.column_names
        delta = self._open()
        if delta is None:
            return pa.schema([self._schema.field(name) for name in names]).empty_table()
        try:
            return self._select(delta, where, names)
        except (*DELTA_ERRORS, ValueError) as error:
            raise self._error("read", error) from error

    def contains(self, where: Any) -> bool:
        """Return whether a row matches a pyarrow expression; files that cannot hold one are not read."""
        delta = self._open()
        if delta is None:
            return False
        try:
            dataset = delta.to_pyarrow_dataset()
            return bool(dataset.head(1, columns=list(self._table.key), filter=where).num_rows)
        except (*DELTA_ERRORS, ValueError) as error:
            raise self._error("read", error) from error

    def append(
        self,
        rows: Sequence[Mapping[str, Any]],
        progress: Mapping[str, int] | None = None,
        expected: Mapping[str, int] | None = None,
    ) -> None:
        """Add rows in one commit; columns that a row does not name are NULL.

        ``progress`` is committed with the rows as Delta application transactions: how far each
        named input has been read. Raises StaleProgressError, and writes nothing, unless the table's
        progress is as ``expected`` (0 for a name that no commit has had yet).
        """
        self._commit(lambda delta: self._append(delta, rows, progress or {}, expected or {}))

    def update(self, row: Mapping[str, Any]) -> None:
        """Replace the row that has the same key."""
        scope = {name: [row[name]] for name in self._table.key}
        self._commit(lambda delta: self._overwrite(delta, [row], scope))

    def amend(self, key: Mapping[str, Any], change: Callable[[TableRow], TableRow | None]) -> None:
        """Replace a row by what ``change`` returns for its newest version; leave it unchanged for None.

        ``change`` is called again with the row's new version if another writer commits meanwhile, so that
        no change of another writer is lost. Nothing is done if there is no row with that key.
        """
        scope = {name: [key[name]] for name in self._table.key}
        where = pc.scalar(True)
        for name in scope:
            where &= pc.field(name) == key[name]

        def write(delta: DeltaTable) -> None:
            try:
                rows = self._select(delta, where, self._table.column_names)
            except ValueError as error:
                raise self._error("read", error) from error
            for row in rows.slice(0, 1).to_pylist(maps_as_pydicts="strict"):
                changed = change(row)
                if changed is not None:
                    self._overwrite(delta, [changed], scope)

        self._commit(write)

    def replace(
        self, wanted: Iterable[Mapping[str, Any]], stored: Iterable[Mapping[str, Any]], scope: Scope
    ) -> int:
        """Turn all rows within ``scope``, which are ``stored``, into ``wanted``; return how many changed.

        Rows outside the scope stay as they are. It is an append if there are only new rows, and no
        commit if nothing differs. No other process may write rows within the scope meanwhile: a
        commit that another one precedes is repeated with these rows.
        """
        stored = list(stored)
        differences = diff_rows(self._table, wanted, stored)
        if not differences:
            return 0
        if all(operation is RowOperation.INSERT for operation, _ in differences):
            self.append([row for _, row in differences])
        else:
            rows = apply_differences(self._table, stored, differences)
            self._commit(lambda delta: self._overwrite(delta, rows, scope))
        return len(differences)

    def create(self) -> bool:
        """Create the table if it is missing, and add columns that it lacks; return whether it was missing."""
        try:
            if not table_exists(self._lake, self._table):
                self._ensure_writable()
                self._create_table()
                return True
            delta = self._open()
            if delta is not None:
                self._add_columns(delta)
        except DELTA_ERRORS as error:
            raise self._error("created", error) from error
        return False

    @property
    def exists(self) -> bool:
        """Whether the table has been created."""
        try:
            return table_exists(self._lake, self._table)
        except DELTA_ERRORS as error:
            raise self._error("read", error) from error

    @property
    def version(self) -> int | None:
        """Number of the newest commit; None if the table does not exist."""
        try:
            delta = open_table(self._lake, self._table)
        except DELTA_ERRORS as error:
            raise self._error("read", error) from error
        return None if delta is None else delta.version()

    def compact(self) -> None:
        """Compact small files. Raises: TableStoreError."""
        self._maintain("compacted", lambda delta: delta.optimize.compact())

    def vacuum(self) -> None:
        """Delete files that no version within the table's retention refers to. Raises: TableStoreError."""
        self._maintain("vacuumed", lambda delta: delta.vacuum(dry_run=False))

    def _maintain(self, verb: str, operation: Callable[[DeltaTable], object]) -> None:
        delta = self._open()
        if delta is None:
            return
        self._ensure_writable()
        try:
            operation(delta)
            delta.update_incremental()
        except DELTA_ERRORS as error:
            raise self._error(verb, error) from error
        store_newest_version(self._lake, self._table, delta)

    def _select(self, delta: DeltaTable, where: Any, columns: Sequence[str]) -> pa.Table:
        dataset = delta.to_pyarrow_dataset()
        present = [name for name in columns if name in dataset.schema.names]
        if missing := set(self._table.key).difference(dataset.schema.names):
            raise ValueError(f"the key column {min(missing)} is missing: this is not a table of Fleetgauge")
        try:
            frame = self._complete(dataset.to_table(columns=present, filter=where), columns)
        except pa.ArrowNotImplementedError:
            # A file that a MERGE of delta-rs wrote: see _overwrite.
            present = [name for name in self._table.column_names if name in dataset.schema.names]
            frame = self._complete(dataset.to_table(columns=present), self._table.column_names).filter(where)
        return frame.select(list(columns))

    def _complete(self, frame: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Columns that an older table lacks are NULL."""
        for name in columns:
            if name not in frame.column_names:
                frame = frame.append_column(name, pa.nulls(frame.num_rows))
        return frame.select(list(columns)).cast(pa.schema([self._schema.field(name) for name in columns]))

    def _commit(self, write: Callable[[DeltaTable], None]) -> None:
        """Run a write against the newest version, again if another writer commits before it.

        ``write`` must make at most one commit.
        """
        for _ in range(_ATTEMPTS):
            delta = self._open()
            self._ensure_writable()
            try:
                delta = delta or self._create_table()
                before = delta.version()
                write(delta)
            except CommitFailedError as error:
                conflict = error
            except DELTA_ERRORS as error:
                raise self._error("written", error) from error
            else:
                if delta.version() > before:
                    store_newest_version(self._lake, self._table, delta)
                return
        raise self._error("written", conflict) from conflict

    def _append(
        self,
        delta: DeltaTable,
        rows: Sequence[Mapping[str, Any]],
        progress: Mapping[str, int],
        expected: Mapping[str, int],
    ) -> None:
        for name, version in expected.items():
            if (delta.transaction_version(name) or 0) != version:
                raise StaleProgressError(
                    f"{self._uri}: another process has written it; stop the other writer"
                )
        transactions = [Transaction(name, version) for name, version in progress.items()]
        properties = CommitProperties(app_transactions=transactions)
        write_deltalake(
            delta, self._frame(rows), mode="append", schema_mode="merge", commit_properties=properties
        )

    def _overwrite(self, delta: DeltaTable, rows: Sequence[Mapping[str, Any]], scope: Scope) -> None:
        """Replace all rows within the scope.

        Not by MERGE: delta-rs writes the rows that it merges as string views, and Arrow applies no
        filter on strings to such a file, which breaks readers of the table.
        """
        write_deltalake(delta, self._frame(rows), mode="overwrite", predicate=_predicate(scope))

    def _frame(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        complete = [dict.fromkeys(self._table.column_names) | dict(row) for row in rows]
        return pa.Table.from_pylist(complete, schema=self._schema)

    def _open(self) -> DeltaTable | None:
        """Return the newest version; None if the table is missing and its first write may create it."""
        try:
            delta = open_table(self._lake, self._table)
        except DELTA_ERRORS as error:
            raise self._error("read", error) from error
        if delta is None and not self._create_missing:
            raise TableStoreError(f"{self._uri}: no such table; `fleetgauge stream` or `backfill` creates it")
        return delta

    def _create_table(self) -> DeltaTable:
        delta = DeltaTable.create(
            self._uri,
            self._schema,
            mode="ignore",
            partition_by=list(self._table.partition_by),
            configuration=dict(_PROPERTIES),
            storage_options=storage_options(self._uri),
        )
        store_newest_version(self._lake, self._table, delta)
        return delta

    def _add_columns(self, delta: DeltaTable) -> None:
        """Add the columns that were defined after the table was created; older rows hold NULL."""
        present = {field.name for field in delta.schema().fields}
        missing = [field for field in self._schema if field.name not in present]
        if missing:
            self._ensure_writable()
            delta.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
            store_newest_version(self._lake, self._table, delta)

    def _ensure_writable(self) -> None:
        """Check the lease and the folders before a write: delta-rs may panic at one that it may not write."""
        self._confirm()
        if is_read_only(self._lake, self._table):
            raise self._read_only_error()

    def _read_only_error(self) -> ReadOnlyLakeError:
        return ReadOnlyLakeError(
            f"{self._uri}: the lake is read-only here; write it where `fleetgauge stream` runs, as its user"
        )

    def _error(self, verb: str, error: Exception) -> TableStoreError:
        if verb != "read" and is_write_refused(error):
            return self._read_only_error()
        return TableStoreError(f"{self._uri}: cannot be {verb}: {describe_table_error(error)}")


def _predicate(scope: Scope) -> str:
    """Return the scope as a SQL expression."""
    return " AND ".join(
        f"{name} IN ({', '.join(_literal(value) for value in values)})" for name, values in scope.items()
    )


def _literal(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"
