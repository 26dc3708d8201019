"""Typed rows of the small tables; the rows of ops/health_events are core's HealthEvent.

A field has the name of its column, so a row class is also the list of columns to read.
"""

from dataclasses import dataclass, fields
from datetime import date, datetime

from fleetgauge_core.contract import HealthEvent


@dataclass(frozen=True, slots=True)
class ClusterWeek:
    """A row of gold/cluster_weeks at its highest revision."""

    cluster_id: str
    week: date
    revision: int
    latency_p99_us: int | None
    latency_p99_censored_us: int | None
    availability_ratio: float | None
    bad_minutes: int | None
    latency_objective_us: int | None
    latency_budget_minutes: float | None
    latency_budget_left_minutes: float | None
    availability_objective: float | None
    availability_budget_minutes: float | None
    availability_spent_minutes: float | None
    minutes_measured: int | None
    minutes_expected: int | None
    coverage: float | None
    closed: bool | None
    revision_reason: str | None


@dataclass(frozen=True, slots=True)
class FleetWeek:
    """A row of gold/fleet_weeks of one segment at its highest revision.

    ``segment_value`` is empty for the whole fleet.
    """

    week: date
    metric: str
    segment_value: str
    revision: int
    median: float | None
    p90: float | None
    p99: float | None
    clusters: int
    clusters_excluded: int
    closed: bool | None


@dataclass(frozen=True, slots=True)
class FailedWeekCheck:
    """A row of ops/quality: an expectation that a week fails since ``at``, so that the week is held back."""

    week: date
    at: datetime
    expectation: str


def column_names(row: type[ClusterWeek | FleetWeek | HealthEvent | FailedWeekCheck]) -> tuple[str, ...]:
    """Return the columns to read for a row class."""
    return tuple(field.name for field in fields(row))
