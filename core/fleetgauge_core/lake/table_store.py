"""Small tables of a lake, read and written by delta-rs without a JVM.

A small table is one whose changed rows a process holds in memory. Every write
is a single Delta commit on top of the version that was just read; if another
writer commits first, the table is read again and the write is repeated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from fleetgauge_core.lake.delta_table import (
    BROKEN,
    is_there,
    open_table,
    reason,
    schema,
    storage_options,
    uri,
)
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.row_diff import Change, row_changes

Row = dict[str, Any]

#: Other processes write rows at the same time, and Delta lets one of two commits win.
_ATTEMPTS = 10
#: Spark and every reader must be able to read the table, so these Delta features stay off.
_PROPERTIES: Mapping[str, str] = {
    "delta.enableDeletionVectors": "false",
    "delta.checkpointPolicy": "classic",
}
_CHANGE = pa.field("change", pa.string())


class TableStoreError(Exception):
    """The table does not exist, or cannot be read or written; one line for a person."""


class StaleProgressError(Exception):
    """The table has other progress than its writer thinks: somebody else has written it; one line."""


class TableStore:
    """One table of a lake.

    ``create``: whether the table is created by its first write and is empty until then;
    otherwise a missing table is an error, so that a mistyped path does not become a lake.

    Every method raises TableStoreError when the table is missing or cannot be read or written.
    """

    def __init__(self, lake: str, table: Table, *, create: bool = False) -> None:
        self._lake = lake
        self._table = table
        self._uri = uri(lake, table)
        self._schema = schema(table)
        self._create_missing = create

    def rows(self, where: Any = None, columns: Sequence[str] = ()) -> list[Row]:
        """Return the rows that match a pyarrow expression, in no order; all columns unless some are named.

        Times are aware and in UTC, maps are dicts. A column that an older table lacks is NULL.
        """
        delta = self._open()
        if delta is None:
            return []
        try:
            frame = self._select(delta, where, columns or self._table.names)
            rows: list[Row] = frame.to_pylist(maps_as_pydicts="strict")
        except (*BROKEN, ValueError) as error:
            raise self._error("read", error) from error
        return rows

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
        self._commit(lambda delta: self._merge(delta, [(Change.UPDATE, row)]))

    def replace(self, wanted: Iterable[Mapping[str, Any]], stored: Iterable[Mapping[str, Any]]) -> int:
        """Turn the rows ``stored`` of this table into the rows ``wanted``; return how many rows changed.

        Rows that are not among ``stored`` stay as they are. Only differences are written: an append
        if there are only new rows, and no commit if nothing differs.
        """
        differences = row_changes(self._table, wanted, stored)
        if not differences:
            return 0
        if all(change is Change.INSERT for change, _ in differences):
            self.append([row for _, row in differences])
        else:
            self._commit(lambda delta: self._merge(delta, differences))
        return len(differences)

    def create(self) -> bool:
        """Create the table if it is missing, and add columns that it lacks; return whether it was missing."""
        try:
            if not is_there(self._lake, self._table):
                self._created()
                return True
            self._add_columns(DeltaTable(self._uri, storage_options=storage_options(self._uri)))
        except BROKEN as error:
            raise self._error("created", error) from error
        return False

    @property
    def exists(self) -> bool:
        try:
            return is_there(self._lake, self._table)
        except BROKEN as error:
            raise self._error("read", error) from error

    @property
    def version(self) -> int | None:
        """The number of the newest commit; None while there is no table."""
        try:
            delta = open_table(self._lake, self._table)
        except BROKEN as error:
            raise self._error("read", error) from error
        return None if delta is None else delta.version()

    def compact(self) -> None:
        """Merge small files; the files that were merged are removed once Delta's retention has passed."""
        delta = self._open()
        if delta is None:
            return
        try:
            delta.optimize.compact()
            delta.vacuum(dry_run=False)
        except BROKEN as error:
            raise self._error("compacted", error) from error

    def _select(self, delta: DeltaTable, where: Any, columns: Sequence[str]) -> pa.Table:
        dataset = delta.to_pyarrow_dataset()
        present = [name for name in columns if name in dataset.schema.names]
        if lacking := set(self._table.key).difference(dataset.schema.names):
            raise ValueError(f"it lacks the column {min(lacking)}: it is not a table of Fleetgauge")
        frame = dataset.to_table(columns=present, filter=where)
        for name in columns:
            if name not in present:
                frame = frame.append_column(name, pa.nulls(frame.num_rows))
        return frame.select(list(columns)).cast(pa.schema([self._schema.field(name) for name in columns]))

    def _commit(self, write: Callable[[DeltaTable], None]) -> None:
        """Run a write against the newest version, again if another writer commits before it.

        ``write`` must make at most one commit.
        """
        for _ in range(_ATTEMPTS):
            try:
                write(self._open() or self._created())
            except CommitFailedError as error:
                conflict = error
            except BROKEN as error:
                raise self._error("written", error) from error
            else:
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
                raise StaleProgressError(f"{self._uri}: another process has written it: let only one run")
        transactions = [Transaction(name, version) for name, version in progress.items()]
        properties = CommitProperties(app_transactions=transactions)
        write_deltalake(delta, self._frame(rows), mode="append", commit_properties=properties)

    def _merge(self, delta: DeltaTable, differences: Sequence[tuple[Change, Mapping[str, Any]]]) -> None:
        changes = pa.array([change.value for change, _ in differences], pa.string())
        source = self._frame([row for _, row in differences]).append_column(_CHANGE, changes)
        same_key = " AND ".join(f"t.{name} = s.{name}" for name in self._table.key)
        values = {name: f"s.{name}" for name in self._table.names}
        merge = delta.merge(source, same_key, "s", "t")
        merge = merge.when_matched_delete(f"s.change = '{Change.DELETE}'")
        merge = merge.when_matched_update(values, f"s.change = '{Change.UPDATE}'")
        merge.when_not_matched_insert(values, f"s.change = '{Change.INSERT}'").execute()

    def _frame(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        whole = [dict.fromkeys(self._table.names) | dict(row) for row in rows]
        return pa.Table.from_pylist(whole, schema=self._schema)

    def _open(self) -> DeltaTable | None:
        """Return the newest version; None if the table is missing and its first write may create it."""
        try:
            delta = open_table(self._lake, self._table)
        except BROKEN as error:
            raise self._error("read", error) from error
        if delta is None and not self._create_missing:
            raise TableStoreError(
                f"{self._uri}: no such table; `fleetgauge stream` or `backfill` makes it with the lake"
            )
        return delta

    def _created(self) -> DeltaTable:
        return DeltaTable.create(
            self._uri,
            self._schema,
            mode="ignore",
            partition_by=list(self._table.partition_by),
            configuration=dict(_PROPERTIES),
            storage_options=storage_options(self._uri),
        )

    def _add_columns(self, delta: DeltaTable) -> None:
        """Columns that the table has gained since it was created; older rows hold NULL there."""
        present = {field.name for field in delta.schema().fields}
        missing = [field for field in self._schema if field.name not in present]
        if missing:
            delta.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)

    def _error(self, verb: str, error: Exception) -> TableStoreError:
        return TableStoreError(f"{self._uri}: cannot be {verb}: {reason(error)}")
