"""A simulated fleet as a lake: silver from the model, gold from silver by the real job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from pyspark.sql import SparkSession

from fleetgauge_core.contract import Leg
from fleetgauge_core.detection.goals import latency_objective_us
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.minute_range import Stretch
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
)
from fleetgauge_pipelines.io.column_append import append_columns
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import Pipeline
from fleetgauge_pipelines.jobs.progress import Advance
from fleetgauge_pipelines.jobs.settings import calendar
from fleetgauge_pipelines.simulation import Incident, SimulatedFleet
from fleetgauge_pipelines.simulation.causes import causes, reasons_of
from fleetgauge_pipelines.simulation.events import health_events
from fleetgauge_pipelines.simulation.pace import HOUR, WEEK
from fleetgauge_pipelines.simulation.silver import FAILURE, Columns, broker_minutes, cluster_minutes

#: So that a week's minutes fit into memory.
_CLUSTERS_AT_ONCE = 50
#: Over 128 groups Spark sorts rows instead of collecting them.
_CLUSTER_WEEKS_AT_ONCE = 120
#: Broker by broker: everything of the newest two days, of four weeks what is around incidents.
_ALL_OF_HOURS = 48
_INCIDENTS_OF_WEEKS = 4
_AROUND = timedelta(minutes=30)

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Contents:
    """How many rows the lake holds."""

    cluster_minutes: int
    broker_minutes: int
    cluster_weeks: int
    fleet_weeks: int


def make_lake(
    spark: SparkSession, lake: Lake, fleet: Fleet, simulated: SimulatedFleet, advance: Advance
) -> Contents:
    """Fill an empty lake with the whole history, as a pipeline would have left it at its end."""
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    _write_minutes(lake, fleet, simulated, advance)
    _write_broker_minutes(lake, simulated, advance)
    _write_events(lake, simulated)
    _compute_weeks(pipeline, fleet, simulated, advance)
    tables = (CLUSTER_MINUTES, BROKER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
    return Contents(*(lake.read(table).count() for table in tables))


def _write_minutes(lake: Lake, fleet: Fleet, simulated: SimulatedFleet, advance: Advance) -> None:
    path = lake.path(CLUSTER_MINUTES)
    reasons = [reasons_of(list(simulated.incidents(cluster))) for cluster in range(simulated.clusters)]

    def columns(cluster: int, week: int) -> Columns:
        part = simulated.part(cluster, week)
        objective_us = latency_objective_us(fleet, fleet.clusters[cluster])
        return {**cluster_minutes(part), "cause": causes(part, objective_us, reasons[cluster])}

    for week in range(simulated.weeks):
        advance("weeks of minutes", week, simulated.weeks)
        for first in range(0, simulated.clusters, _CLUSTERS_AT_ONCE):
            some = range(first, min(first + _CLUSTERS_AT_ONCE, simulated.clusters))
            append_columns(path, (columns(one, week) for one in some), FAILURE)
    advance("weeks of minutes", simulated.weeks, simulated.weeks)


def _write_broker_minutes(lake: Lake, simulated: SimulatedFleet, advance: Advance) -> None:
    days = _days_of_hours(simulated)
    for number, hours in enumerate(days):
        advance("days of broker-minutes", number, len(days))
        append_columns(lake.path(BROKER_MINUTES), _broker_minutes(simulated, hours), FAILURE)
    advance("days of broker-minutes", len(days), len(days))


def _broker_minutes(
    simulated: SimulatedFleet, hours: Mapping[tuple[int, int], list[int]]
) -> Iterator[Columns]:
    """Both legs of the hours of each cluster and week."""
    for (cluster, week), of_part in hours.items():
        part = simulated.part(cluster, week)
        for hour in of_part:
            for leg in Leg:
                yield broker_minutes(part, leg, hour)


def _days_of_hours(simulated: SimulatedFleet) -> list[dict[tuple[int, int], list[int]]]:
    """Per UTC day the hours that have broker-minutes, by cluster and week."""
    days: dict[object, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for cluster in range(simulated.clusters):
        for hour in sorted(_hours(simulated, cluster)):
            day = (simulated.start + hour * HOUR * _MINUTE).date()
            days[day][cluster, hour * HOUR // WEEK].append(hour)
    return [dict(hours) for hours in days.values()]


def _hours(simulated: SimulatedFleet, cluster: int) -> set[int]:
    newest = simulated.end - _INCIDENTS_OF_WEEKS * WEEK * _MINUTE
    hours = set(range(max(0, simulated.hours - _ALL_OF_HOURS), simulated.hours))
    for incident in simulated.incidents(cluster):
        if incident.start >= newest:
            hours |= _hours_around(simulated, incident)
    return hours


def _hours_around(simulated: SimulatedFleet, incident: Incident) -> set[int]:
    first, last = (
        (at - simulated.start) // (HOUR * _MINUTE)
        for at in (incident.start - _AROUND, incident.end + _AROUND)
    )
    return set(range(max(0, first), min(last + 1, simulated.hours)))


def _write_events(lake: Lake, simulated: SimulatedFleet) -> None:
    events = [
        asdict(event)
        for cluster in range(simulated.clusters)
        for incident in simulated.incidents(cluster)
        for event in health_events(incident)
    ]
    lake.small(HEALTH_EVENTS).append(events)


def _compute_weeks(pipeline: Pipeline, fleet: Fleet, simulated: SimulatedFleet, advance: Advance) -> None:
    """All clusters' weeks as the calendar has them, a few at a time."""
    spans = calendar(fleet).between(simulated.start, simulated.end - _MINUTE)
    at_once = max(1, _CLUSTER_WEEKS_AT_ONCE // simulated.clusters)
    for first in range(0, len(spans), at_once):
        advance("weeks of levels", first, len(spans))
        some = spans[first : first + at_once]
        lo, hi = max(some[0].start, simulated.start), min(some[-1].end, simulated.end) - _MINUTE
        stretches = [Stretch(cluster.id, lo, hi) for cluster in fleet.clusters]
        pipeline.compute_weeks(stretches, f"simulate/{some[0].week}", simulated.end)
    advance("weeks of levels", len(spans), len(spans))
