"""Revisions in the gold tables after the levels were computed several times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetgauge_core.tables import CLUSTER_WEEKS, FLEET_WEEKS, Table
from tests.oracle.oracle import Row, Tables

LATE_RECORDS = "late_records"
#: The columns that number a revision; all others are its content.
NUMBERING = frozenset({"revision", "revision_reason"})


def apply_revisions(computations: Sequence[Tables]) -> Tables:
    """Return silver of the latest computation, and every closed revision of gold, or the open one."""
    latest = computations[-1]
    return Tables(
        latest.broker_minutes,
        latest.cluster_minutes,
        _apply_to_table(CLUSTER_WEEKS, [computation.cluster_weeks for computation in computations]),
        _apply_to_table(FLEET_WEEKS, [computation.fleet_weeks for computation in computations]),
        latest.burn_causes,
    )


def _apply_to_table(table: Table, computations: Iterable[Iterable[Row]]) -> list[Row]:
    key = [name for name in table.key if name != "revision"]
    history: dict[tuple[Any, ...], list[Row]] = {}
    for rows in computations:
        for row in rows:
            before = history.setdefault(tuple(row[name] for name in key), [])
            before[:] = _add_revision(before, row)
    return [row for rows in history.values() for row in rows]


def _add_revision(before: Sequence[Row], row: Row) -> list[Row]:
    """Return the revisions of a week after one more computation: a change to a closed week adds one."""
    closed = [row for row in before if row["closed"]]
    if not closed:
        return [row]
    if _content(closed[-1]) == _content(row):
        return closed
    reason = {"revision_reason": _reason(closed[-1], row)} if "revision_reason" in row else {}
    return [*closed, row | {"revision": closed[-1]["revision"] + 1} | reason]


def _reason(before: Row, row: Row) -> str:
    """Return the reason of a revision by the columns that differ: corrections, causes alone, or levels."""
    differing = {name for name, value in _content(row).items() if value != before[name]}
    if "corrections" in differing:
        return "corrections"
    return "causes" if differing == {"causes"} else LATE_RECORDS


def _content(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if name not in NUMBERING}
