"""Compute silver from bronze: broker-minutes and cluster-minutes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.causes import CauseInterval
from fleetgauge_core.slo.minute_range import MinuteRange, ceil_to_minute, split_ranges
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    PROBE_MINUTES,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import TableFiles
from fleetgauge_pipelines.io.tasks import map_files, run_tasks
from fleetgauge_pipelines.jobs.annotations import Annotations
from fleetgauge_pipelines.jobs.changed_rows import commit_changes
from fleetgauge_pipelines.jobs.silver_bounds import SilverBounds, find_brokers_at_end
from fleetgauge_pipelines.jobs.silver_tasks import (
    CausesTask,
    ComputedUnit,
    SilverTask,
    compute_unit,
    recompute_unit_causes,
)
from fleetgauge_pipelines.jobs.silver_units import (
    Unit,
    describe_files,
    list_clusters,
    list_spans,
    merge_observed,
    plan_units,
    resume_units,
)
from fleetgauge_pipelines.jobs.span_reads import select_spans
from fleetgauge_pipelines.quality.silver_facts import SilverFacts, merge_silver_facts
from fleetgauge_pipelines.transforms.expected_brokers import ClusterSpan
from fleetgauge_pipelines.transforms.records import to_minute
from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes

#: A task holds about so many records, at most half as many more: with it and them a Python worker takes up
#: to 700 MB.
MOST_RECORDS = 250_000
#: Silver is computed a week at a time, so that a gap of months does not have to fit into memory.
_MAX_PIECE = timedelta(days=7)
_MINUTE = timedelta(minutes=1)


class SilverWriter:
    """Keeps the silver tables in step with bronze."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet, bounds: SilverBounds) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._bounds = bounds

    def update(
        self,
        ranges: Sequence[MinuteRange],
        touched: Mapping[str, tuple[datetime, datetime]],
        annotations: Annotations,
    ) -> tuple[int, SilverFacts]:
        """Compute the ranges' minutes in both silver tables from bronze.

        Return how many rows changed, and the aggregates for the quality gate.
        """
        changed, facts = 0, []
        initial_brokers = self._bounds.find_initial_brokers(ranges)
        for piece in split_ranges(ranges, _MAX_PIECE):
            works = self._list_works(piece, initial_brokers, annotations)
            units, observed = self._compute_units(works, self._bounds.is_new(piece))
            initial_brokers |= {range_.cluster_id: find_brokers_at_end(range_, observed) for range_ in piece}
            facts += [unit.facts for unit in units]
            self._bounds.mark_written(piece)
            # The cluster-minutes are written last: see SilverBounds.
            for table in (BROKER_MINUTES, CLUSTER_MINUTES):
                changed += commit_changes(
                    self._spark, self._lake, table, [unit.rows[table] for unit in units]
                )
            self._bounds.extend(piece, touched, observed)
        return changed, merge_silver_facts(facts)

    def recompute_causes(self, ranges: Sequence[MinuteRange], annotations: Annotations) -> int:
        """Recompute the causes of stored minutes whose annotations changed; return how many rows changed."""
        changed = 0
        for piece in split_ranges(ranges, _MAX_PIECE):
            works = self._list_works(_join_ranges(piece), {}, annotations)
            spans = [(range_.cluster_id, to_minute(range_.first), to_minute(range_.last)) for range_ in piece]
            stored = self._list_silver(works)
            tasks = [
                CausesTask(
                    {
                        BROKER_MINUTES: stored[BROKER_MINUTES].at(unit.paths),
                        CLUSTER_MINUTES: select_spans(stored[CLUSTER_MINUTES], list_spans(unit.works)),
                    },
                    self._lake.path(CLUSTER_MINUTES),
                    unit.works,
                    tuple(spans),
                )
                for unit in self._plan_units(stored[BROKER_MINUTES], works)
            ]
            changed += commit_changes(
                self._spark,
                self._lake,
                CLUSTER_MINUTES,
                run_tasks(self._spark, recompute_unit_causes, tasks),
            )
        return changed

    def _list_silver(self, works: Sequence[ClusterWork]) -> dict[Table, TableFiles]:
        return {table: self._list_files(table, works) for table in (BROKER_MINUTES, CLUSTER_MINUTES)}

    def _list_files(self, table: Table, works: Sequence[ClusterWork]) -> TableFiles:
        """Return the files that may have rows of the works."""
        spans = list_spans(works)
        return select_spans(self._lake.list_files(table, spans.days), spans)

    def _plan_units(self, files: TableFiles, works: Sequence[ClusterWork]) -> list[Unit]:
        if files.rows <= MOST_RECORDS:
            return [Unit(tuple(works), frozenset(file.path for file in files.files))]
        spans = map_files(self._spark, files, partial(describe_files, list_clusters(works)))
        return plan_units([span for part in spans for span in part], works, MOST_RECORDS)

    def _list_works(
        self,
        piece: Sequence[MinuteRange],
        initial_brokers: Mapping[str, tuple[int, ...] | None],
        annotations: Annotations,
    ) -> list[ClusterWork]:
        lo, hi = min(range_.first for range_ in piece), max(range_.last for range_ in piece) + _MINUTE
        intervals = annotations.cause_intervals(lo, hi)
        return [
            self._plan_work(
                range_, initial_brokers.get(range_.cluster_id), intervals.get(range_.cluster_id, ())
            )
            for range_ in piece
        ]

    def _plan_work(
        self, range_: MinuteRange, initial: tuple[int, ...] | None, intervals: Sequence[CauseInterval]
    ) -> ClusterWork:
        cluster, first_minute = (
            self._clusters[range_.cluster_id],
            self._bounds.first_minute(range_.cluster_id),
        )
        return ClusterWork(
            ClusterSpan(
                range_.cluster_id,
                to_minute(range_.first),
                to_minute(range_.last),
                initial,
                frozenset(cluster.retired),
            ),
            self._fleet.latency_objective_us(cluster),
            tuple(intervals),
            to_minute(ceil_to_minute(cluster.since)) if cluster.since else None,
            to_minute(first_minute) if first_minute else None,
        )

    def _compute_units(
        self, works: Sequence[ClusterWork], is_new: bool
    ) -> tuple[list[ComputedUnit], dict[str, ObservedMinutes]]:
        """Compute works in tasks; return what each wrote, and what was observed by cluster."""
        bronze = self._list_files(PROBE_MINUTES, works)
        stored = {} if is_new else self._list_silver(works)
        locations = {table: self._lake.path(table) for table in (BROKER_MINUTES, CLUSTER_MINUTES)}
        agent_late_us = round(self._fleet.agent_late_ms * 1000)

        def compute(units: Iterable[Unit]) -> list[ComputedUnit]:
            tasks = [
                SilverTask(
                    bronze.at(unit.paths),
                    {table: select_spans(files, list_spans(unit.works)) for table, files in stored.items()},
                    locations,
                    unit.works,
                    agent_late_us,
                )
                for unit in units
            ]
            return run_tasks(self._spark, compute_unit, tasks)

        units = self._plan_units(bronze, works)
        computed = compute(units)
        rest = resume_units(units, [unit.observed for unit in computed], [unit.left_out for unit in computed])
        resumed = iter(compute(unit for unit in rest if unit.works))
        in_order = [
            part
            for unit, of_unit in zip(computed, rest, strict=True)
            for part in (unit, *([next(resumed)] if of_unit.works else []))
        ]
        return in_order, merge_observed(part.observed for part in in_order)


def _join_ranges(ranges: Iterable[MinuteRange]) -> list[MinuteRange]:
    """Return one range of each cluster, with the minutes between its ranges."""
    joined: dict[str, MinuteRange] = {}
    for range_ in ranges:
        before = joined.get(range_.cluster_id, range_)
        first, last = min(before.first, range_.first), max(before.last, range_.last)
        joined[range_.cluster_id] = MinuteRange(range_.cluster_id, first, last)
    return list(joined.values())
