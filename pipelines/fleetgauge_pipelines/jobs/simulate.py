"""Write a simulated fleet's history to a lake: silver from the model, gold from silver by the real job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import chain

from pyspark.sql import SparkSession

from fleetgauge_core.contract import HealthEvent, Leg
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.minute_range import MinuteRange
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CHANGES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import Pipeline
from fleetgauge_pipelines.jobs.progress import ReportProgress
from fleetgauge_pipelines.jobs.settings import make_week_calendar
from fleetgauge_pipelines.simulation import SimulatedFleet, SimulatedIncident
from fleetgauge_pipelines.simulation.causes import find_cause_intervals, find_causes
from fleetgauge_pipelines.simulation.events import list_health_events
from fleetgauge_pipelines.simulation.latency_trend import HOUR, WEEK
from fleetgauge_pipelines.simulation.silver import FAILURE, Columns, make_broker_minutes, make_cluster_minutes

#: How many clusters' minutes of a week are in memory at a time.
_CLUSTERS_PER_APPEND = 50
#: A few tasks' worth: more at a time would show no progress, and fewer spend their time on commits.
_CLUSTER_WEEKS_PER_COMPUTATION = 800
#: Broker-minutes are written for all of the newest two days, and around the incidents of the last four weeks.
_FULL_HOURS = 48
_INCIDENT_WEEKS = 4
_INCIDENT_MARGIN = timedelta(minutes=30)

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class SimulatedRowCounts:
    """How many rows a simulated lake holds, by table."""

    cluster_minutes: int
    broker_minutes: int
    cluster_weeks: int
    fleet_weeks: int


def simulate_lake(
    spark: SparkSession, lake: Lake, fleet: Fleet, simulated: SimulatedFleet, advance: ReportProgress
) -> SimulatedRowCounts:
    """Fill an empty lake with the whole history, as a pipeline would have left it at the history's end."""
    lake.create_tables()
    events = [list_health_events(simulated, cluster) for cluster in range(simulated.clusters)]
    _write_minutes(lake, fleet, simulated, events, advance)
    _write_broker_minutes(lake, simulated, advance)
    lake.table_store(HEALTH_EVENTS).append([asdict(event) for event in chain.from_iterable(events)])
    lake.table_store(CHANGES).append([asdict(record) for record in simulated.change_records()])
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    _compute_weeks(pipeline, fleet, simulated, advance)
    pipeline.compute_change_costs(simulated.end)
    tables = (CLUSTER_MINUTES, BROKER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
    return SimulatedRowCounts(*(lake.list_files(table).rows for table in tables))


def _write_minutes(
    lake: Lake,
    fleet: Fleet,
    simulated: SimulatedFleet,
    events: Sequence[Sequence[HealthEvent]],
    advance: ReportProgress,
) -> None:
    intervals = [
        find_cause_intervals(simulated, cluster, of_cluster) for cluster, of_cluster in enumerate(events)
    ]

    def columns(cluster: int, week: int) -> Columns:
        simulated_week = simulated.simulate_week(cluster, week)
        objective_us = fleet.latency_objective_us(fleet.clusters[cluster])
        return {
            **make_cluster_minutes(simulated_week),
            "cause": find_causes(simulated_week, objective_us, intervals[cluster]),
        }

    for week in range(simulated.weeks):
        advance("weeks of minutes", week, simulated.weeks)
        for first in range(0, simulated.clusters, _CLUSTERS_PER_APPEND):
            clusters = range(first, min(first + _CLUSTERS_PER_APPEND, simulated.clusters))
            lake.append_columns(CLUSTER_MINUTES, (columns(cluster, week) for cluster in clusters), FAILURE)
    advance("weeks of minutes", simulated.weeks, simulated.weeks)


def _write_broker_minutes(lake: Lake, simulated: SimulatedFleet, advance: ReportProgress) -> None:
    days = _group_hours_by_day(simulated)
    for number, hours in enumerate(days):
        advance("days of broker-minutes", number, len(days))
        lake.append_columns(BROKER_MINUTES, _iterate_broker_minutes(simulated, hours), FAILURE)
    advance("days of broker-minutes", len(days), len(days))


def _iterate_broker_minutes(
    simulated: SimulatedFleet, hours: Mapping[tuple[int, int], list[int]]
) -> Iterator[Columns]:
    """Yield the broker-minutes of both legs in the hours of each cluster and week."""
    for (cluster, week), hours_of_week in hours.items():
        simulated_week = simulated.simulate_week(cluster, week)
        for hour in hours_of_week:
            for leg in Leg:
                yield make_broker_minutes(simulated_week, leg, hour)


def _group_hours_by_day(simulated: SimulatedFleet) -> list[dict[tuple[int, int], list[int]]]:
    """Return for each UTC day the hours that get broker-minutes, by cluster and week."""
    days: dict[object, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for cluster in range(simulated.clusters):
        for hour in sorted(_select_hours(simulated, cluster)):
            day = (simulated.start + hour * HOUR * _MINUTE).date()
            days[day][cluster, hour * HOUR // WEEK].append(hour)
    return [dict(hours) for hours in days.values()]


def _select_hours(simulated: SimulatedFleet, cluster: int) -> set[int]:
    incidents_from = simulated.end - _INCIDENT_WEEKS * WEEK * _MINUTE
    hours = set(range(max(0, simulated.hours - _FULL_HOURS), simulated.hours))
    for incident in simulated.incidents(cluster):
        if incident.start >= incidents_from:
            hours |= _hours_around(simulated, incident)
    return hours


def _hours_around(simulated: SimulatedFleet, incident: SimulatedIncident) -> set[int]:
    first, last = (
        (at - simulated.start) // (HOUR * _MINUTE)
        for at in (incident.start - _INCIDENT_MARGIN, incident.end + _INCIDENT_MARGIN)
    )
    return set(range(max(0, first), min(last + 1, simulated.hours)))


def _compute_weeks(
    pipeline: Pipeline, fleet: Fleet, simulated: SimulatedFleet, advance: ReportProgress
) -> None:
    """Compute the calendar weeks of all clusters, a few weeks at a time."""
    spans = make_week_calendar(fleet).weeks_between(simulated.start, simulated.end - _MINUTE)
    weeks_per_computation = max(1, _CLUSTER_WEEKS_PER_COMPUTATION // simulated.clusters)
    for first in range(0, len(spans), weeks_per_computation):
        advance("weeks of levels", first, len(spans))
        group = spans[first : first + weeks_per_computation]
        lo, hi = max(group[0].start, simulated.start), min(group[-1].end, simulated.end) - _MINUTE
        ranges = [MinuteRange(cluster.id, lo, hi) for cluster in fleet.clusters]
        pipeline.compute_weeks(ranges, f"simulate/{group[0].week}", simulated.end)
    advance("weeks of levels", len(spans), len(spans))
