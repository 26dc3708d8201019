"""Settings of the fleet file in the form that the jobs use."""

from datetime import datetime

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.weeks import WeekCalendar, WeekSpan
from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition


def make_week_calendar(fleet: Fleet) -> WeekCalendar:
    """Return the fleet's weeks: its time zone and the day on which a week starts."""
    return WeekCalendar(fleet.week.zone, fleet.week.start)


def define_week(fleet: Fleet, cluster: Cluster, span: WeekSpan, clock: datetime) -> WeekDefinition:
    """Return the week of a cluster; it is closed if it is by ``clock``."""
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
    """Return the cluster, segment and its value for each segment that a cluster belongs to."""
    return [
        (cluster.id, segment, value)
        for cluster in fleet.clusters
        for segment, value in sorted(cluster.segments)
    ]
