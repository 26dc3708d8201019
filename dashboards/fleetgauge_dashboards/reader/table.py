"""One Delta table, read by version: what was read once is kept until the table moves.

LakeError
└── UnreadableError    the table is there, but cannot be read
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

from fleetgauge_core.lake.delta_table import (
    ARROW,
    BROKEN,
    is_there,
    open_table,
    reason,
)
from fleetgauge_core.tables import Table

#: pyarrow.compute.Expression, which comes without types.
Filter = Any
#: Column, comparison, value as text: all of which a file's rows have to be able to meet.
Files = Sequence[tuple[str, str, str]]
Row = dict[str, Any]
T = TypeVar("T")

#: Queries kept per table: about what a few dozen open pages ask for.
KEPT = 64
#: What they may take together: a week of a great cluster's minutes is 10 MB.
KEPT_BYTES = 64_000_000


class LakeError(Exception):
    """Something about the lake that a person has to know."""


class UnreadableError(LakeError):
    """The table is there, but cannot be read; says which and why in one line."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class TableReader:
    """Reads of one table, one at a time: callers of the same query share its answer."""

    def __init__(
        self, lake: str, table: Table, every_s: float = 1.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.table = table
        self._lake = lake
        self._every_s = every_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._delta: DeltaTable | None = None
        self._looked_at = float("-inf")
        self._at: tuple[str, int] | None = None
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()

    def version(self) -> int | None:
        """The table's newest version, None while there is no table."""
        with self._lock:
            delta = self._guarded(self._newest)
            return None if delta is None else delta.version()

    def answer(self, query: Hashable, ask: Callable[[DeltaTable], T], empty: T) -> T:
        """What ``ask`` finds in the newest version; ``empty`` while there is no table."""
        with self._lock:
            return self._guarded(lambda: self._answer(query, ask, empty))

    def _answer(self, query: Hashable, ask: Callable[[DeltaTable], T], empty: T) -> T:
        delta = self._newest()
        if delta is None:
            return empty
        at = (str(delta.metadata().id), delta.version())
        if at != self._at:
            self._answers.clear()
            self._at = at
        if query not in self._answers:
            self._answers[query] = ask(delta)
        self._answers.move_to_end(query)
        while len(self._answers) > 1 and (len(self._answers) > KEPT or self._kept_bytes() > KEPT_BYTES):
            self._answers.popitem(last=False)
        value: T = self._answers[query]
        return value

    def _kept_bytes(self) -> int:
        """Of arrow's tables, which are the large ones."""
        return sum(one.nbytes for one in self._answers.values() if isinstance(one, pa.Table))

    def frame(
        self, delta: DeltaTable, names: tuple[str, ...], where: Filter = None, files: Files = ()
    ) -> pa.Table:
        """The named columns; one that the table does not have yet is all null.

        ``where`` chooses rows; ``files`` says which files can hold any of them, by partition or by what the
        log knows of their values. A table of a thousand files takes a second to open whole.
        """
        held = {field.name for field in delta.schema().fields}
        known = [one for one in files if one[0] in held]
        dataset = delta.to_pyarrow_dataset(file_pruning_predicate=known or None)
        there = [name for name in names if name in dataset.schema.names]
        found = dataset.to_table(columns=there, filter=where)
        for position, name in enumerate(names):
            if name not in there:
                found = found.add_column(position, name, pa.nulls(len(found), self._type(name)))
        return found

    def newest_days(self, names: tuple[str, ...], days: int) -> pa.Table:
        """The named columns, of a table by day, from so many days before its newest on; in no order."""

        def ask(delta: DeltaTable) -> pa.Table:
            newest = max((entry["day"] for entry in delta.partitions() if entry["day"]), default=None)
            if newest is None:
                return self.frame(delta, names)
            since = date.fromisoformat(str(newest)) - timedelta(days=days)
            return self.frame(delta, names, column("day") >= since, [("day", ">=", f"{since}")])

        return self.answer((names, days), ask, self.empty(names))

    def rows(self, query: Hashable, where: Filter = None) -> list[Row]:
        """Whole rows of a small table."""

        def ask(delta: DeltaTable) -> list[Row]:
            found: list[Row] = self.frame(delta, self.table.names, where).to_pylist()
            return found

        return self.answer(query, ask, [])

    def empty(self, names: tuple[str, ...]) -> pa.Table:
        return pa.schema([(name, self._type(name)) for name in names]).empty_table()

    def _type(self, name: str) -> pa.DataType:
        return next(ARROW[column.type] for column in self.table.columns if column.name == name)

    def _newest(self) -> DeltaTable | None:
        now = self._monotonic()
        if now - self._looked_at < self._every_s:
            return self._delta
        if self._delta is None:
            self._delta = open_table(self._lake, self.table)
        elif is_there(self._lake, self.table):
            self._delta.update_incremental()
        else:
            # Deleted under us: what was read of it is no answer any more.
            self._forget()
        self._looked_at = now
        return self._delta

    def _guarded(self, step: Callable[[], T]) -> T:
        """Tried twice, for the table may have been vacuumed or made anew; then translated."""
        try:
            return step()
        except BROKEN:
            self._forget()
        try:
            return step()
        except BROKEN as error:
            self._forget()
            raise UnreadableError(self.table.path, reason(error)) from error

    def _forget(self) -> None:
        self._delta = None
        self._looked_at = float("-inf")
        self._answers.clear()


def read_once(
    lake: str,
    table: Table,
    where: Filter = None,
    names: tuple[str, ...] | None = None,
    files: Files = (),
) -> pa.Table:
    """The rows that the filter keeps, with all columns or those named; none while there is no table."""
    reader, wanted = TableReader(lake, table), names or table.names
    return reader.answer(
        "once", lambda delta: reader.frame(delta, wanted, where, files), reader.empty(wanted)
    )


def column(name: str) -> Filter:
    """A column in a filter; on a partition column it selects files."""
    return ds.field(name)
