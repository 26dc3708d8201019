"""What a fleet file means to the pipeline, as rows for Spark."""

from datetime import datetime
from typing import Any

from fleetgauge_core.detection.goals import latency_objective_us
from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.weeks import WeekCalendar, WeekSpan


def calendar(fleet: Fleet) -> WeekCalendar:
    return WeekCalendar(fleet.week.zone, fleet.week.start)


def week_row(fleet: Fleet, cluster: Cluster, span: WeekSpan, clock: datetime) -> tuple[Any, ...]:
    """A row of transforms.cluster_weeks.WEEKS_DDL."""
    objective = fleet.objective(cluster)
    return (
        cluster.id,
        span.week,
        span.start,
        span.end,
        clock >= span.closes_at,
        latency_objective_us(fleet, cluster),
        objective.availability,
    )


def segment_rows(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Rows of transforms.fleet_weeks.SEGMENTS_DDL."""
    return [
        (cluster.id, segment, value)
        for cluster in fleet.clusters
        for segment, value in sorted(cluster.segments)
    ]
