"""What a table's log says of its files, without opening one of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.tables import Table

_DAY = "partition.day"

#: A smaller file is worth putting together with its neighbours.
SMALL_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """One file of a table; without a day where the table is not laid out by day."""

    day: date | None
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Contents:
    """A table's newest version."""

    version: int | None
    files: tuple[File, ...]

    @property
    def days(self) -> list[date]:
        return sorted({file.day for file in self.files if file.day is not None})

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def small_files(self) -> int:
        """Those that could be one: beyond the first of each day, or of a table without days."""
        return sum(number - 1 for number in self._small().values())

    def scattered(self, last: date) -> list[date | None]:
        """The days up to the last one, or the table without days, that have several small files."""
        found = (day for day, number in self._small().items() if number > 1 and (day is None or day <= last))
        return sorted(found, key=str)

    def before(self, day: date) -> "Contents":
        """Of the days before one alone."""
        return Contents(self.version, tuple(file for file in self.files if file.day and file.day < day))

    def _small(self) -> Counter[date | None]:
        return Counter(file.day for file in self.files if file.bytes < SMALL_BYTES)


def contents(lake: str, table: Table) -> Contents:
    """Without a version and files while there is no table. Raises one of store.BROKEN."""
    delta = open_table(lake, table)
    if delta is None:
        return Contents(None, ())
    actions = pa.table(delta.get_add_actions(flatten=True))
    wanted = [name for name in ("size_bytes", "num_records", _DAY) if name in actions.column_names]
    return Contents(delta.version(), tuple(_file(row) for row in actions.select(wanted).to_pylist()))


def _file(row: Mapping[str, Any]) -> File:
    return File(row.get(_DAY), row["size_bytes"], row["num_records"] or 0)
