"""Summarize the recovery weeks of mirrors and consumer groups, and which of them missed an objective."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.units import NO_VALUE, format_percent, format_seconds

#: The metric of a mirror's replication lag in seconds, as an upper bound.
RPO_METRIC = "rpo_s"
UNKNOWN = "unknown"
#: The label of each metric, by its name in the table; other metrics are shown by that name.
_METRIC_LABELS = {
    "rpo_s": "RPO upper bound, p99 of minutes",
    "rpo_s_estimate": "RPO estimate, p99 of minutes",
    "rpo_records": "Lag upper bound in records, p99 of minutes",
    "readiness": "Share of minutes ready",
}
_READINESS_METRIC = "readiness"


@dataclass(frozen=True, slots=True)
class SubjectQuantiles:
    """Quantiles of a metric over all mirrors or groups.

    None where no subject counts, or where the value of one that counts is unknown.
    """

    metric: str
    median: float | None
    p90: float | None
    p99: float | None
    subjects: int
    subjects_excluded: int


@dataclass(frozen=True, slots=True)
class MissedObjective:
    """A mirror or a consumer group that missed its objective."""

    metric: str
    scope: str
    subject: str
    value: float | None
    objective: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class RecoveryWeek:
    """A week of all mirrors and groups; ``judged`` counts subjects with both an objective and a value."""

    week: date
    closed: bool
    over: tuple[SubjectQuantiles, ...]
    judged: int
    missed: tuple[MissedObjective, ...]


def build_recovery_week(rows: Iterable[Row], week: date) -> RecoveryWeek | None:
    """Return the summary of the week; None where the week has no row."""
    of_week = sorted(
        (row for row in rows if row["week"] == week), key=lambda row: (row["scope"], row["metric"])
    )
    if not of_week:
        return None
    subjects = [row for row in of_week if row["subject"]]
    return RecoveryWeek(
        week=week,
        closed=all(row["closed"] for row in of_week),
        over=tuple(_over(row) for row in of_week if not row["subject"]),
        judged=sum(row["met"] is not None for row in subjects),
        missed=_missed(row for row in subjects if row["met"] is False),
    )


def build_recovery_weeks(rows: Sequence[Row]) -> tuple[RecoveryWeek, ...]:
    """Return the summary of each week, newest first: the open week before the closed one."""
    weeks = sorted({row["week"] for row in rows}, reverse=True)
    return tuple(recovery_week for week in weeks if (recovery_week := build_recovery_week(rows, week)))


def find_rpo_objective_s(rows: Iterable[Row]) -> float | None:
    """Return the objective in seconds for mirrors' lag in the newest week that has one; None without any."""
    with_objective = [row for row in rows if row["metric"] == RPO_METRIC and row["objective"] is not None]
    newest = max(with_objective, key=lambda row: row["week"], default=None)
    return None if newest is None else float(newest["objective"])


def subject_kind(metric: str) -> str:
    """Return what the metric is measured for: groups or mirrors."""
    return "groups" if metric == _READINESS_METRIC else "mirrors"


def format_quantile(quantiles: SubjectQuantiles, value: float | None) -> str:
    """Return a quantile as text; unknown where subjects count and the value is missing."""
    return UNKNOWN if value is None and quantiles.subjects else format_metric_value(quantiles.metric, value)


def format_missed_value(missed: MissedObjective) -> str:
    """Return as text the value that missed its objective."""
    return UNKNOWN if missed.value is None else format_metric_value(missed.metric, missed.value)


def metric_label(metric: str) -> str:
    """Return the metric's label for a person."""
    return _METRIC_LABELS.get(metric, metric)


def format_metric_value(metric: str, value: float | None) -> str:
    """Return the value as text in the metric's unit."""
    if value is None:
        return NO_VALUE
    if metric.startswith(RPO_METRIC):
        return format_seconds(value)
    return format_percent(value) if metric == _READINESS_METRIC else f"{value:,.0f}"


def _over(row: Row) -> SubjectQuantiles:
    return SubjectQuantiles(
        row["metric"],
        row["median"],
        row["p90"],
        row["p99"],
        row["subjects"] or 0,
        row["subjects_excluded"] or 0,
    )


def _missed(rows: Iterable[Row]) -> tuple[MissedObjective, ...]:
    """Return the missed objectives by scope, metric and name."""
    missed = (
        MissedObjective(
            row["metric"], row["scope"], row["subject"], row["value"], row["objective"], row["coverage"]
        )
        for row in rows
    )
    return tuple(sorted(missed, key=lambda objective: (objective.scope, objective.metric, objective.subject)))
