"""Whether two sets of rows of one table say the same."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetgauge_core.tables import Table, Type

RELATIVE_TOLERANCE = 1e-9
#: For what is zero in one order of summing and a few last bits in another.
ABSOLUTE_TOLERANCE = 1e-12

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One column (or the whole row: column '') of one key on which the two disagree."""

    key: Key
    column: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        where = ", ".join(str(part) for part in self.key)
        return f"({where}) {self.column or 'row'}: expected {self.expected!r}, found {self.actual!r}"


def differences(
    table: Table,
    expected: Iterable[Mapping[str, Any]],
    actual: Iterable[Mapping[str, Any]],
    key: Sequence[str] = (),
) -> list[Difference]:
    """All disagreements: doubles within a relative 1e-9, everything else exactly, every row once.

    ``key`` defaults to the table's; key columns left out of it are compared as content.
    """
    key = tuple(key) or table.key
    expected, actual = list(expected), list(actual)
    wanted, found = _by_key(expected, key), _by_key(actual, key)
    return [
        *_repeated(expected, key, "expected"),
        *_repeated(actual, key, "actual"),
        *(Difference(one, "", "a row", "no row") for one in wanted if one not in found),
        *(Difference(one, "", "no row", "a row") for one in found if one not in wanted),
        *(
            difference
            for one in wanted
            if one in found
            for difference in _row_differences(table, one, wanted[one], found[one], key)
        ),
    ]


def _by_key(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> dict[Key, Mapping[str, Any]]:
    return {tuple(row[column] for column in key): row for row in rows}


def _repeated(rows: Iterable[Mapping[str, Any]], key: Sequence[str], side: str) -> list[Difference]:
    times = Counter(tuple(row[column] for column in key) for row in rows)
    return [Difference(one, "", "one row", f"{n} rows in {side}") for one, n in times.items() if n > 1]


def _row_differences(
    table: Table, one: Key, expected: Mapping[str, Any], actual: Mapping[str, Any], key: Sequence[str]
) -> list[Difference]:
    compared = [column for column in table.columns if column.name not in (*key, *table.volatile)]
    return [
        Difference(one, column.name, expected[column.name], actual.get(column.name, "no column"))
        for column in compared
        if not _same(column.type, expected[column.name], actual.get(column.name, "no column"))
    ]


def _same(type_: Type, expected: Any, actual: Any) -> bool:
    if expected is None or actual is None:
        return expected is actual
    if type_ is Type.DOUBLE and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    if type_ is Type.INTS:
        return list(expected) == list(actual)
    if type_ is Type.COUNTS:
        return dict(expected) == dict(actual)
    return bool(expected == actual)
