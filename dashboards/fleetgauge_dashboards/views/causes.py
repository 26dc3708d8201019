"""Rank the causes that burned the fleet's latency budgets in a week."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class BurnCause:
    """A cause of bad minutes.

    ``bad_minutes`` are of all clusters, ``share`` is of all bad minutes, ``clusters`` counts those with any;
    ``bad_minutes_before`` are of the week before.
    """

    cause: str
    bad_minutes: int
    share: float
    clusters: int
    bad_minutes_before: int


def rank_burn_causes(rows: Iterable[Mapping[str, Any]], week: date) -> tuple[BurnCause, ...]:
    """Return the week's causes, most bad minutes first.

    ``rows`` are gold/burn_causes of the week and of the week before, of one value of a segment.
    """
    week_before = week - timedelta(days=7)
    rows_by_week: dict[date, dict[str, Mapping[str, Any]]] = {week: {}, week_before: {}}
    for row in rows:
        if row["week"] in rows_by_week:
            rows_by_week[row["week"]][row["cause"]] = row
    total = sum(row["bad_minutes"] for row in rows_by_week[week].values())
    causes = (
        BurnCause(
            cause,
            row["bad_minutes"],
            row["bad_minutes"] / total,
            row["clusters"],
            rows_by_week[week_before][cause]["bad_minutes"] if cause in rows_by_week[week_before] else 0,
        )
        for cause, row in rows_by_week[week].items()
        if row["bad_minutes"]
    )
    return tuple(sorted(causes, key=lambda cause: (-cause.bad_minutes, cause.cause)))
