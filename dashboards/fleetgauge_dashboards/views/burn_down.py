"""Compute how a cluster's latency budget was spent in the course of its week."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR
from fleetgauge_dashboards.links import MINUTE, Span
from fleetgauge_dashboards.reader import ClusterWeek

STEP = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class BurnDown:
    """The minutes left of the budget at each time of ``at``, ascending; ``budget`` is that of the whole week.

    Minutes that corrections exclude for all brokers count as good. Corrections of single brokers change
    ``left_now``, the week's own number, but not the line.
    """

    week: Span
    at: tuple[datetime, ...]
    left: tuple[float, ...]
    budget: float
    left_now: float | None


def compute_burn_down(
    minutes: pa.Table, week: ClusterWeek, span: Span, excluded: Sequence[Span]
) -> BurnDown | None:
    """Return the burn-down of silver's minutes of the week; None without minutes or without an objective."""
    objective_us = week.latency_objective_us
    if not len(minutes) or objective_us is None or week.latency_budget_minutes is None:
        return None
    begin, until = (
        bound.as_py().astimezone(UTC) for bound in (pc.min(minutes["minute"]), pc.max(minutes["minute"]))
    )
    until += MINUTE
    remaining = timedelta(0) if week.closed else span.end - until
    budget = week.latency_budget_minutes + remaining / MINUTE / LATENCY_BUDGET_DIVISOR
    bad = _bad(minutes, objective_us, excluded)
    at = [begin, *_steps(begin, until), until]
    left = [budget - sum(minute < moment for minute in bad) for moment in at]
    return BurnDown(span, tuple(at), tuple(left), budget, week.latency_budget_left_minutes)


def _steps(begin: datetime, until: datetime) -> list[datetime]:
    """Return the full hours in between."""
    first = begin.replace(minute=0, second=0, microsecond=0) + STEP
    return [first + n * STEP for n in range(-((first - until) // STEP))] if first < until else []


def _bad(minutes: pa.Table, objective_us: int, excluded: Sequence[Span]) -> list[datetime]:
    over = pc.fill_null(pc.greater(minutes["latency_p99_censored_us"], objective_us), False)
    bad_minutes = [minute.astimezone(UTC) for minute in minutes.filter(over)["minute"].to_pylist()]
    return [minute for minute in bad_minutes if not any(span.start <= minute < span.end for span in excluded)]
