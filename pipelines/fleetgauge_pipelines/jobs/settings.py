"""Settings of the fleet file in the form that the Spark jobs use."""

from datetime import date, datetime
from typing import NamedTuple

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.weeks import WeekCalendar, WeekSpan


def make_week_calendar(fleet: Fleet) -> WeekCalendar:
    """Return the fleet's weeks: its time zone and the day on which a week starts."""
    return WeekCalendar(fleet.week.zone, fleet.week.start)


class WeekDefinition(NamedTuple):
    """A cluster's week to compute: its bounds in UTC, [starts, ends), and the objectives of its tier."""

    cluster_id: str
    week: date
    starts: datetime
    ends: datetime
    closed: bool
    latency_objective_us: int
    availability_objective: float


def define_week(fleet: Fleet, cluster: Cluster, span: WeekSpan, clock: datetime) -> WeekDefinition:
    """Return a row of transforms.cluster_weeks.WEEKS_DDL; the week is closed if it is by ``clock``."""
    objective = fleet.objective(cluster)
    return WeekDefinition(
        cluster.id,
        span.week,
        span.start,
        span.end,
        clock >= span.closes_at,
        fleet.latency_objective_us(cluster),
        objective.availability,
    )


def list_segment_rows(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Return a row of transforms.fleet_weeks.SEGMENTS_DDL for each cluster and segment that it belongs to."""
    return [
        (cluster.id, segment, value)
        for cluster in fleet.clusters
        for segment, value in sorted(cluster.segments)
    ]
