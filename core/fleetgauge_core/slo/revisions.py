"""Revisions: an open week is overwritten, a closed one never; what changes it makes the next revision."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

OPEN = 0
CLOSED = "closed"
LATE_RECORDS = "late_records"
#: Where one of these columns differs it is why; else records came late.
_WHY = {
    "definition": "definition",
    "corrections": "corrections",
    "latency_objective_us": "objective",
    "availability_objective": "objective",
}


def revisions(computed: Row, stored: Sequence[Row], content: Sequence[str]) -> list[Row]:
    """Every row that the table should hold of one week.

    ``computed`` is the week as it comes out now, with ``closed``; ``stored`` are
    the table's rows of it; ``content`` names what makes two revisions differ.
    A closed week keeps its revisions, loses revision 0, and never opens again.
    """
    kept = sorted((row for row in stored if row["revision"] > OPEN), key=lambda row: int(row["revision"]))
    if not kept:
        first, reason = (1, CLOSED) if computed["closed"] else (OPEN, None)
        return [{**computed, "revision": first, "revision_reason": reason}]
    last = kept[-1]
    if all(computed[name] == last[name] for name in content):
        return list(kept)
    return [
        *kept,
        {
            **computed,
            "revision": last["revision"] + 1,
            "revision_reason": _reason(computed, last, content),
            "closed": True,
        },
    ]


def _reason(computed: Row, last: Row, content: Sequence[str]) -> str:
    differing = [name for name in content if computed[name] != last[name]]
    if differing == ["causes"]:
        return "causes"
    return next((why for name, why in _WHY.items() if name in differing), LATE_RECORDS)


def latest(rows: Sequence[Row], key: Sequence[str]) -> list[Row]:
    """The highest revision of each key."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        identity = tuple(row[name] for name in key)
        if identity not in best or row["revision"] > best[identity]["revision"]:
            best[identity] = row
    return list(best.values())
