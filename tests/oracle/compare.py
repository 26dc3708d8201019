"""Comparison of two sets of rows of a table."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetgauge_core.tables import ColumnType, Table

RELATIVE_TOLERANCE = 1e-9
#: For sums that are zero or differ from zero in the last bits, by the order of summation.
ABSOLUTE_TOLERANCE = 1e-12

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A column of a key in which the two sets differ; column '' stands for the whole row."""

    key: Key
    column: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        key = ", ".join(str(part) for part in self.key)
        return f"({key}) {self.column or 'row'}: expected {self.expected!r}, found {self.actual!r}"


def find_differences(
    table: Table,
    expected: Iterable[Mapping[str, Any]],
    actual: Iterable[Mapping[str, Any]],
    key: Sequence[str] = (),
) -> list[Difference]:
    """Return all differences; doubles may differ by a relative 1e-9, and no row may be repeated.

    ``key`` defaults to the key of the table; the key columns that it omits are compared as content.
    """
    key = tuple(key) or table.key
    expected, actual = list(expected), list(actual)
    expected_by_key, actual_by_key = _by_key(expected, key), _by_key(actual, key)
    return [
        *_find_repeated(expected, key, "expected"),
        *_find_repeated(actual, key, "actual"),
        *(
            Difference(row_key, "", "a row", "no row")
            for row_key in expected_by_key
            if row_key not in actual_by_key
        ),
        *(
            Difference(row_key, "", "no row", "a row")
            for row_key in actual_by_key
            if row_key not in expected_by_key
        ),
        *(
            difference
            for row_key in expected_by_key
            if row_key in actual_by_key
            for difference in _row_differences(
                table, row_key, expected_by_key[row_key], actual_by_key[row_key], key
            )
        ),
    ]


def _by_key(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> dict[Key, Mapping[str, Any]]:
    return {tuple(row[column] for column in key): row for row in rows}


def _find_repeated(rows: Iterable[Mapping[str, Any]], key: Sequence[str], side: str) -> list[Difference]:
    times = Counter(tuple(row[column] for column in key) for row in rows)
    return [
        Difference(row_key, "", "one row", f"{n} rows in {side}") for row_key, n in times.items() if n > 1
    ]


def _row_differences(
    table: Table, row_key: Key, expected: Mapping[str, Any], actual: Mapping[str, Any], key: Sequence[str]
) -> list[Difference]:
    compared = [column for column in table.columns if column.name not in (*key, *table.volatile)]
    return [
        Difference(row_key, column.name, expected[column.name], actual.get(column.name, "no column"))
        for column in compared
        if not _are_equal(column.type, expected[column.name], actual.get(column.name, "no column"))
    ]


def _are_equal(type_: ColumnType, expected: Any, actual: Any) -> bool:
    if expected is None or actual is None:
        return expected is actual
    if type_ is ColumnType.DOUBLE and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    if type_ is ColumnType.INT_ARRAY:
        return list(expected) == list(actual)
    if type_ is ColumnType.COUNT_MAP:
        return dict(expected) == dict(actual)
    return bool(expected == actual)
