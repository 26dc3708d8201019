"""Differences between the stored and the wanted rows of a table, for rows that fit into memory."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from fleetgauge_core.tables.model import Table

RowMapping = Mapping[str, Any]


class RowOperation(StrEnum):
    """What a write does with one row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def diff_rows(
    table: Table, wanted: Iterable[RowMapping], stored: Iterable[RowMapping]
) -> list[tuple[RowOperation, RowMapping]]:
    """Return the operations that turn the rows ``stored`` into the rows ``wanted``.

    Rows that differ only in volatile columns are equal, so that writing the same result
    a second time changes nothing.
    """
    stored_by_key = {_key(table, row): row for row in stored}
    wanted_by_key = {_key(table, row): row for row in wanted}
    upserts = [
        (RowOperation.UPDATE if key in stored_by_key else RowOperation.INSERT, row)
        for key, row in wanted_by_key.items()
        if key not in stored_by_key
        or any(row[name] != stored_by_key[key][name] for name in table.compared_columns)
    ]
    deletes = [(RowOperation.DELETE, row) for key, row in stored_by_key.items() if key not in wanted_by_key]
    return upserts + deletes


def apply_differences(
    table: Table, stored: Iterable[RowMapping], differences: Iterable[tuple[RowOperation, RowMapping]]
) -> list[RowMapping]:
    """Return the stored rows after the operations; rows without one stay exactly as they are stored."""
    rows = {_key(table, row): row for row in stored}
    for operation, row in differences:
        if operation is RowOperation.DELETE:
            del rows[_key(table, row)]
        else:
            rows[_key(table, row)] = row
    return list(rows.values())


def _key(table: Table, row: RowMapping) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)
