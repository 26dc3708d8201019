"""What burned the fleet's latency budgets in a week, most minutes first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class Cause:
    """Bad minutes of all clusters, their share of all, and how many clusters had any."""

    cause: str
    bad_minutes: int
    share: float
    clusters: int
    bad_minutes_before: int


def causes(rows: Iterable[Mapping[str, Any]], week: date) -> tuple[Cause, ...]:
    """``rows``: gold/burn_causes of the week and the one before, of one segment's value."""
    last = week - timedelta(days=7)
    burned: dict[date, dict[str, Mapping[str, Any]]] = {week: {}, last: {}}
    for row in rows:
        if row["week"] in burned:
            burned[row["week"]][row["cause"]] = row
    every = sum(row["bad_minutes"] for row in burned[week].values())
    found = (
        Cause(
            cause,
            row["bad_minutes"],
            row["bad_minutes"] / every,
            row["clusters"],
            burned[last][cause]["bad_minutes"] if cause in burned[last] else 0,
        )
        for cause, row in burned[week].items()
        if row["bad_minutes"]
    )
    return tuple(sorted(found, key=lambda one: (-one.bad_minutes, one.cause)))
