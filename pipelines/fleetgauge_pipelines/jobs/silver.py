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
from fleetgauge_pipelines.io.table_files import TableVersion
from fleetgauge_pipelines.jobs.annotations import Annotations
from fleetgauge_pipelines.jobs.changed_rows import commit_changes, run_tasks
from fleetgauge_pipelines.jobs.silver_bounds import SilverBounds, find_brokers_at_end
from fleetgauge_pipelines.jobs.silver_tasks import (
    CausesTask,
    ComputedUnit,
    SilverTask,
    compute_unit,
    outline_unit,
    recompute_unit_causes,
)
from fleetgauge_pipelines.jobs.silver_units import FileSpan, chain_units, merge_observed, plan_units
from fleetgauge_pipelines.quality.silver_facts import SilverFacts, merge_silver_facts
from fleetgauge_pipelines.transforms.expected_brokers import ClusterSpan
from fleetgauge_pipelines.transforms.records import to_minute
from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes

#: A task holds these many records: with their samples some 250 MB.
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
            stored = self._open_silver()
            strips = plan_units(_list_files(stored[BROKER_MINUTES], works), works, MOST_RECORDS)
            tasks = [
                CausesTask(stored, self._lake.path(CLUSTER_MINUTES), unit, tuple(spans))
                for strip in strips
                for unit in strip
            ]
            changed += commit_changes(
                self._spark,
                self._lake,
                CLUSTER_MINUTES,
                run_tasks(self._spark, recompute_unit_causes, tasks),
            )
        return changed

    def _open_silver(self) -> dict[Table, TableVersion]:
        return {table: self._lake.open_version(table) for table in (BROKER_MINUTES, CLUSTER_MINUTES)}

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
        bronze = self._lake.open_version(PROBE_MINUTES)
        tables = (BROKER_MINUTES, CLUSTER_MINUTES)
        new_task = partial(
            SilverTask,
            bronze,
            {table: self._lake.path(table) for table in tables},
            agent_late_us=round(self._fleet.agent_late_ms * 1000),
            stored=None if is_new else self._open_silver(),
        )
        strips = plan_units(_list_files(bronze, works), works, MOST_RECORDS)
        before_last = [new_task(unit=unit) for strip in strips for unit in strip[:-1]]
        outlines = iter(run_tasks(self._spark, outline_unit, before_last))
        chained = [
            new_task(unit=unit)
            for strip in strips
            for unit in chain_units(strip, [next(outlines) for _ in strip[:-1]])
        ]
        computed = run_tasks(self._spark, compute_unit, chained)
        return computed, merge_observed(unit.observed for unit in computed)


def _join_ranges(ranges: Iterable[MinuteRange]) -> list[MinuteRange]:
    """Return one range of each cluster, with the minutes between its ranges."""
    joined: dict[str, MinuteRange] = {}
    for range_ in ranges:
        before = joined.get(range_.cluster_id, range_)
        first, last = min(before.first, range_.first), max(before.last, range_.last)
        joined[range_.cluster_id] = MinuteRange(range_.cluster_id, first, last)
    return list(joined.values())


def _list_files(version: TableVersion, works: Sequence[ClusterWork]) -> list[FileSpan]:
    """Return the files of bronze or silver with rows of the works' minutes."""
    first, last = min(work.span.first for work in works), max(work.span.last for work in works)
    return [
        FileSpan(file.rows, file.lowest["cluster_id"], file.highest["cluster_id"], lo, hi)
        for file in version.list_files(("cluster_id", "minute"))
        if (lo := to_minute(file.lowest["minute"])) <= last
        and (hi := to_minute(file.highest["minute"])) >= first
    ]
