"""What has to change for a table to hold what it should, for rows few enough to hold in memory."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from fleetgauge_core.tables.model import Table

Row = Mapping[str, Any]


class Change(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def row_changes(table: Table, wanted: Iterable[Row], stored: Iterable[Row]) -> list[tuple[Change, Row]]:
    """The wanted rows that are new or different, and the stored rows that should go.

    Rows are compared by content; volatile columns alone change nothing, so that
    computing the same thing again writes nothing.
    """
    old = {_key(table, row): row for row in stored}
    new = {_key(table, row): row for row in wanted}
    changes = [
        (Change.UPDATE if key in old else Change.INSERT, row)
        for key, row in new.items()
        if key not in old or any(row[name] != old[key][name] for name in table.content)
    ]
    return changes + [(Change.DELETE, row) for key, row in old.items() if key not in new]


def _key(table: Table, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)
