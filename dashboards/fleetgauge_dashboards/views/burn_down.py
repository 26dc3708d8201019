"""How a cluster's latency budget went in the course of its week."""

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
    """Minutes left at each of ``at``, which ascend; ``budget`` is that of the whole week.

    What corrections leave out of all brokers counts as good here. Those of single brokers change
    ``left_now``, which is the week's own number, and not the line.
    """

    week: Span
    at: tuple[datetime, ...]
    left: tuple[float, ...]
    budget: float
    left_now: float | None


def burn_down(minutes: pa.Table, week: ClusterWeek, span: Span, left_out: Sequence[Span]) -> BurnDown | None:
    """``minutes``: silver's of the week, in no order. None while there is none, or no objective."""
    objective_us = week.latency_objective_us
    if not len(minutes) or objective_us is None or week.latency_budget_minutes is None:
        return None
    begun, until = (
        bound.as_py().astimezone(UTC) for bound in (pc.min(minutes["minute"]), pc.max(minutes["minute"]))
    )
    until += MINUTE
    ahead = timedelta(0) if week.closed else span.end - until
    budget = week.latency_budget_minutes + ahead / MINUTE / LATENCY_BUDGET_DIVISOR
    bad = _bad(minutes, objective_us, left_out)
    at = [begun, *_steps(begun, until), until]
    left = [budget - sum(one < moment for one in bad) for moment in at]
    return BurnDown(span, tuple(at), tuple(left), budget, week.latency_budget_left_minutes)


def _steps(begun: datetime, until: datetime) -> list[datetime]:
    """Whole hours between."""
    first = begun.replace(minute=0, second=0, microsecond=0) + STEP
    return [first + n * STEP for n in range(-((first - until) // STEP))] if first < until else []


def _bad(minutes: pa.Table, objective_us: int, left_out: Sequence[Span]) -> list[datetime]:
    over = pc.fill_null(pc.greater(minutes["latency_p99_censored_us"], objective_us), False)
    found = [one.astimezone(UTC) for one in minutes.filter(over)["minute"].to_pylist()]
    return [one for one in found if not any(span.start <= one < span.end for span in left_out)]
