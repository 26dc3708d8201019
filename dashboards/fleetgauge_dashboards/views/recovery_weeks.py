"""Weeks of mirrors and groups: over all of them, and who missed an objective."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.units import NOTHING, percent, seconds

#: The seconds that a mirror was behind at most.
RPO = "rpo_s"
NOBODY_KNOWS = "nobody knows"
#: Metrics by their column; one that is not here is called as in the table.
_NAMES = {
    "rpo_s": "RPO at most, p99 of minutes",
    "rpo_s_estimate": "RPO estimated, p99 of minutes",
    "rpo_records": "Records behind at most, p99 of minutes",
    "readiness": "Share of minutes ready",
}
_OF_GROUPS = "readiness"


@dataclass(frozen=True, slots=True)
class Over:
    """One metric over all mirrors or groups; None where none counts, or one counts of which nobody knows."""

    metric: str
    median: float | None
    p90: float | None
    p99: float | None
    subjects: int
    subjects_excluded: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A mirror or a group that did not keep to its objective."""

    metric: str
    scope: str
    subject: str
    value: float | None
    objective: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class RecoveryWeek:
    """One week; ``judged`` subjects and metrics have an objective and a number."""

    week: date
    closed: bool
    over: tuple[Over, ...]
    judged: int
    missed: tuple[Missed, ...]


def recovery_week(rows: Iterable[Row], week: date) -> RecoveryWeek | None:
    """None where the week has no row."""
    own = sorted((row for row in rows if row["week"] == week), key=lambda row: (row["scope"], row["metric"]))
    if not own:
        return None
    subjects = [row for row in own if row["subject"]]
    return RecoveryWeek(
        week=week,
        closed=all(row["closed"] for row in own),
        over=tuple(_over(row) for row in own if not row["subject"]),
        judged=sum(row["met"] is not None for row in subjects),
        missed=_missed(row for row in subjects if row["met"] is False),
    )


def shown_weeks(rows: Sequence[Row]) -> tuple[RecoveryWeek, ...]:
    """The open one before the closed one."""
    weeks = sorted({row["week"] for row in rows}, reverse=True)
    return tuple(found for week in weeks if (found := recovery_week(rows, week)))


def rpo_objective_s(rows: Iterable[Row]) -> float | None:
    """What mirrors' seconds behind are held to in the newest week."""
    given = [row for row in rows if row["metric"] == RPO and row["objective"] is not None]
    newest = max(given, key=lambda row: row["week"], default=None)
    return None if newest is None else float(newest["objective"])


def whose(metric: str) -> str:
    return "groups" if metric == _OF_GROUPS else "mirrors"


def level(one: Over, value: float | None) -> str:
    """One of its quantiles: not known where subjects count of which nobody knows."""
    return NOBODY_KNOWS if value is None and one.subjects else measured(one.metric, value)


def held(one: Missed) -> str:
    """What it had instead."""
    return NOBODY_KNOWS if one.value is None else measured(one.metric, one.value)


def named(metric: str) -> str:
    return _NAMES.get(metric, metric)


def measured(metric: str, value: float | None) -> str:
    """In the metric's unit."""
    if value is None:
        return NOTHING
    if metric.startswith(RPO):
        return seconds(value)
    return percent(value) if metric == _OF_GROUPS else f"{value:,.0f}"


def _over(row: Row) -> Over:
    return Over(
        row["metric"],
        row["median"],
        row["p90"],
        row["p99"],
        row["subjects"] or 0,
        row["subjects_excluded"] or 0,
    )


def _missed(rows: Iterable[Row]) -> tuple[Missed, ...]:
    """By scope, metric and name."""
    found = (
        Missed(row["metric"], row["scope"], row["subject"], row["value"], row["objective"], row["coverage"])
        for row in rows
    )
    return tuple(sorted(found, key=lambda one: (one.scope, one.metric, one.subject)))
