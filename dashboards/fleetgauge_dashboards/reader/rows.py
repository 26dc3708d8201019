"""Rows of the small tables. A field's name is the column's, so a row is its own projection."""

from dataclasses import dataclass, fields
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class ClusterWeek:
    """gold/cluster_weeks, at its highest revision."""

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
    """gold/fleet_weeks of one segment, at its highest revision; the whole fleet's value is empty."""

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
class HealthEvent:
    """ops/health_events: a broker's state changed. Without a broker it is the cluster's."""

    event_id: str
    fingerprint: str
    cluster_id: str
    broker_id: int | None
    at: datetime
    from_state: str
    to_state: str
    kind: str
    evidence: str


@dataclass(frozen=True, slots=True)
class BrokenWeek:
    """ops/quality: an expectation that a week breaks since ``at``, for which it is held back."""

    week: date
    at: datetime
    expectation: str


def columns_of(row: type[ClusterWeek | FleetWeek | HealthEvent | BrokenWeek]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(row))
