"""Revisions of a week: an open week is overwritten; a change to a closed week adds a revision."""

from collections.abc import Sequence
from typing import Any

from fleetgauge_core.slo.corrected_week import WeekRow

OPEN = 0
CLOSED = "closed"
LATE_RECORDS = "late_records"
#: Reason of a revision by the column that differs; without such a column, records arrived late.
_REASONS = {
    "definition": "definition",
    "corrections": "corrections",
    "latency_objective_us": "objective",
    "availability_objective": "objective",
}


def build_revisions(computed: WeekRow, stored: Sequence[WeekRow], content: Sequence[str]) -> list[WeekRow]:
    """Return every row that the table should hold of one week.

    ``computed``: the week as computed now, with ``closed``; ``stored``: the table's rows of the week;
    ``content``: the columns that make two revisions differ. A closed week keeps its revisions, has no
    revision 0, and is never opened again.
    """
    closed = sorted((row for row in stored if row["revision"] > OPEN), key=lambda row: int(row["revision"]))
    if not closed:
        revision, reason = (1, CLOSED) if computed["closed"] else (OPEN, None)
        return [{**computed, "revision": revision, "revision_reason": reason}]
    last = closed[-1]
    if all(computed[name] == last[name] for name in content):
        return list(closed)
    return [
        *closed,
        {
            **computed,
            "revision": last["revision"] + 1,
            "revision_reason": _revision_reason(computed, last, content),
            "closed": True,
        },
    ]


def _revision_reason(computed: WeekRow, last: WeekRow, content: Sequence[str]) -> str:
    differing = [name for name in content if computed[name] != last[name]]
    if differing == ["causes"]:
        return "causes"
    return next((reason for name, reason in _REASONS.items() if name in differing), LATE_RECORDS)


def find_latest_revisions(rows: Sequence[WeekRow], key: Sequence[str]) -> list[WeekRow]:
    """Return the row with the highest revision for each value of the key columns."""
    latest: dict[tuple[Any, ...], WeekRow] = {}
    for row in rows:
        identity = tuple(row[name] for name in key)
        if identity not in latest or row["revision"] > latest[identity]["revision"]:
            latest[identity] = row
    return list(latest.values())
