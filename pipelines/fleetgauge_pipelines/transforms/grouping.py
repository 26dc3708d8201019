"""Aggregates by key that combine from those of parts, as a scan of a table needs them."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

_MERGERS = {"min": "min", "max": "max", "count": "sum"}


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of rows with the same ``keys``, and what is wanted of each: a column and min, max or count.

    The result has the keys and columns such as ``minute_min``; a count is of values that are not NULL.
    """

    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...] = ()

    def summarize(self, rows: pa.Table) -> pa.Table:
        """Return a row for each key."""
        return rows.group_by(list(self.keys)).aggregate(list(self.aggregates)).select(self._names)

    def merge(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Return a row for each key from the summaries of at least one part."""
        rows = pa.concat_tables(parts)
        merged = [(f"{name}_{kind}", _MERGERS[kind]) for name, kind in self.aggregates]
        groups = rows.group_by(list(self.keys)).aggregate(merged)
        names = [*self.keys, *(f"{name}_{merger}" for name, merger in merged)]
        return groups.select(names).rename_columns(self._names)

    @property
    def _names(self) -> list[str]:
        return [*self.keys, *(f"{name}_{kind}" for name, kind in self.aggregates)]
