"""Number, size and days of the data files of a table, read from its Delta log alone."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.tables import Table

_DAY = "partition.day"

#: Files smaller than this are worth compacting.
SMALL_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a table; ``day`` is None if the table is not partitioned by day."""

    day: date | None
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The newest version of a table and its data files; version None means that the table does not exist."""

    version: int | None
    files: tuple[DataFile, ...]

    @property
    def days(self) -> list[date]:
        """The days that have files, ascending."""
        return sorted({file.day for file in self.files if file.day is not None})

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(file.bytes for file in self.files)

    @property
    def rows(self) -> int:
        """Total number of rows."""
        return sum(file.rows for file in self.files)

    @property
    def small_files(self) -> int:
        """Number of files that compaction would remove: all small files of a day but one."""
        return sum(count - 1 for count in self._count_small_files().values())

    def days_to_compact(self, last: date) -> list[date | None]:
        """Return the days up to ``last`` that have several small files; [None] for a table without days."""
        counts = self._count_small_files()
        days = (day for day, count in counts.items() if count > 1 and (day is None or day <= last))
        return sorted(days, key=str)

    def before_day(self, day: date) -> "TableSnapshot":
        """Return a snapshot that contains only the files of days before ``day``."""
        return TableSnapshot(self.version, tuple(file for file in self.files if file.day and file.day < day))

    def _count_small_files(self) -> Counter[date | None]:
        return Counter(file.day for file in self.files if file.bytes < SMALL_BYTES)


def read_snapshot(lake: str, table: Table) -> TableSnapshot:
    """Return the newest version of a table; it has no version and no files if the table does not exist.

    Raises: one of DELTA_ERRORS if the table cannot be read.
    """
    delta = open_table(lake, table)
    if delta is None:
        return TableSnapshot(None, ())
    actions = pa.table(delta.get_add_actions(flatten=True))
    columns = [name for name in ("size_bytes", "num_records", _DAY) if name in actions.column_names]
    return TableSnapshot(
        delta.version(), tuple(_data_file(row) for row in actions.select(columns).to_pylist())
    )


def _data_file(row: Mapping[str, Any]) -> DataFile:
    return DataFile(row.get(_DAY), row["size_bytes"], row["num_records"] or 0)
