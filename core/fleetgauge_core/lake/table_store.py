"""A table that people and operations write to, a row at a time: rows are added and amended, never removed."""

from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from fleetgauge_core.lake.delta_table import (
    BROKEN,
    open_table,
    reason,
    schema,
)
from fleetgauge_core.tables import Table

Row = dict[str, Any]

#: Others write rows at the same time, and Delta lets one of two win.
_AMENDED_WITHIN = 10


class KeptTableError(Exception):
    """The table is not there, or cannot be read or written; one line for a person."""


class KeptTable:
    """One of a lake's tables. Every call raises KeptTableError where there is none, or it cannot be had."""

    def __init__(self, lake: str, table: Table) -> None:
        self._lake = lake
        self._kept = table
        self._path = f"{lake.rstrip('/')}/{table.path}"
        self._schema = schema(table)

    def rows(self) -> list[Row]:
        """All of them, in no order."""
        try:
            found: list[Row] = self._table().to_pyarrow_table().cast(self._schema).to_pylist()
        except (*BROKEN, ValueError) as error:
            raise self._failed("read", error) from error
        return found

    def add(self, row: Row) -> None:
        """Columns that it does not name are NULL."""
        try:
            write_deltalake(self._table(), self._frame(row), mode="append")
        except BROKEN as error:
            raise self._failed("written", error) from error

    def amend(self, row: Row) -> None:
        """Let this be the row of its key."""
        same = " AND ".join(f"t.{name} = s.{name}" for name in self._kept.key)
        for _ in range(_AMENDED_WITHIN):
            try:
                self._table().merge(self._frame(row), same, "s", "t").when_matched_update_all().execute()
            except CommitFailedError as error:
                conflict = error
            except BROKEN as error:
                raise self._failed("written", error) from error
            else:
                return
        raise self._failed("written", conflict) from conflict

    def _frame(self, row: Row) -> pa.Table:
        return pa.Table.from_pylist([dict.fromkeys(self._kept.names) | row], schema=self._schema)

    def _table(self) -> DeltaTable:
        try:
            table = open_table(self._lake, self._kept)
        except BROKEN as error:
            raise self._failed("read", error) from error
        if table is None:
            raise KeptTableError(
                f"{self._path}: no such table; `fleetgauge stream` or `backfill` makes it with the lake"
            )
        return table

    def _failed(self, verb: str, error: Exception) -> KeptTableError:
        return KeptTableError(f"{self._path}: cannot be {verb}: {reason(error)}")
