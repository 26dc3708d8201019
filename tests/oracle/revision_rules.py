"""Revisions: what is left in the gold tables when the levels were computed several times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetgauge_core.tables import CLUSTER_WEEKS, FLEET_WEEKS, Table
from tests.oracle.oracle import Row, Tables

LATE_RECORDS = "late_records"
#: Which revision a row is, and why; everything else is what it says.
NUMBERING = frozenset({"revision", "revision_reason"})


def after(computations: Sequence[Tables]) -> Tables:
    """Silver is the latest computation's; gold has every revision that was closed, or the open one."""
    latest = computations[-1]
    return Tables(
        latest.broker_minutes,
        latest.cluster_minutes,
        _revised(CLUSTER_WEEKS, [one.cluster_weeks for one in computations]),
        _revised(FLEET_WEEKS, [one.fleet_weeks for one in computations]),
        latest.burn_causes,
    )


def _revised(table: Table, computations: Iterable[Iterable[Row]]) -> list[Row]:
    key = [name for name in table.key if name != "revision"]
    history: dict[tuple[Any, ...], list[Row]] = {}
    for rows in computations:
        for row in rows:
            before = history.setdefault(tuple(row[name] for name in key), [])
            before[:] = _next(before, row)
    return [row for rows in history.values() for row in rows]


def _next(before: Sequence[Row], row: Row) -> list[Row]:
    """An open week is overwritten; a closed one stays, and what differs from it comes after it."""
    closed = [one for one in before if one["closed"]]
    if not closed:
        return [row]
    if _content(closed[-1]) == _content(row):
        return closed
    reason = {"revision_reason": _reason(closed[-1], row)} if "revision_reason" in row else {}
    return [*closed, row | {"revision": closed[-1]["revision"] + 1} | reason]


def _reason(before: Row, row: Row) -> str:
    """By what differs: which corrections took something, nothing but causes, or else the levels."""
    differing = {name for name, value in _content(row).items() if value != before[name]}
    if "corrections" in differing:
        return "corrections"
    return "causes" if differing == {"causes"} else LATE_RECORDS


def _content(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if name not in NUMBERING}
