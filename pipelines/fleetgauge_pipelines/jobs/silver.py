"""Compute silver from bronze: broker-minutes and cluster-minutes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.minute_range import MinuteRange, split_ranges
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    PROBE_MINUTES,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake, materialize
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.jobs.annotations import Annotations
from fleetgauge_pipelines.jobs.silver_bounds import (
    ObservedMinutes,
    SilverBounds,
    find_brokers_at_end,
    last_expected_columns,
    summarize_observed,
)
from fleetgauge_pipelines.quality.silver_facts import SilverFacts, compute_silver_facts, merge_silver_facts
from fleetgauge_pipelines.transforms.broker_minutes import (
    DENSITY_DDL,
    add_failures,
    compute_broker_minutes,
    density_columns,
)
from fleetgauge_pipelines.transforms.causes import CAUSE_INTERVALS_DDL, recompute_causes
from fleetgauge_pipelines.transforms.cluster_minutes import compute_cluster_minutes
from fleetgauge_pipelines.transforms.expected_brokers import (
    RANGES_DDL,
    compute_expected_brokers,
    select_ranges,
)

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
        #: As many as a shuffle would write; a frame that was read from bronze may have hundreds of
        #: partitions.
        self._files_per_day = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)

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
        for piece, bounds, brokers, observed in self._compute_broker_minutes(ranges):
            first_counted = self._bounds.find_first_counted_minutes(observed, piece)
            counted = self._drop_uncounted(brokers, first_counted, piece)
            facts.append(compute_silver_facts(counted))
            intervals = self._build_cause_intervals(piece, annotations)
            minutes = materialize(compute_cluster_minutes(counted, intervals))
            is_new = self._bounds.is_new(piece)
            self._bounds.mark_written(piece)
            for table, wanted in ((BROKER_MINUTES, counted), (CLUSTER_MINUTES, minutes)):
                if is_new:
                    changed += self._lake.append_counted(table, wanted.coalesce(self._files_per_day))
                else:
                    stored = select_ranges(self._read_span(table, piece), bounds)
                    changed += self._lake.replace_rows(table, wanted, stored)
            self._bounds.extend(piece, first_counted, touched, observed)
        return changed, merge_silver_facts(facts)

    def recompute_causes(self, ranges: Sequence[MinuteRange], annotations: Annotations) -> int:
        """Recompute the causes of stored minutes whose annotations changed; return how many rows changed."""
        changed = 0
        for piece in split_ranges(ranges, _MAX_PIECE):
            intervals = self._build_cause_intervals(piece, annotations)
            bounds = self._build_range_frame(piece, {})
            minutes, brokers = (
                select_ranges(self._read_span(table, piece), bounds)
                for table in (CLUSTER_MINUTES, BROKER_MINUTES)
            )
            stored = minutes.where("latency_p99_censored_us IS NOT NULL")
            changed += self._lake.replace_rows(
                CLUSTER_MINUTES, recompute_causes(stored, brokers, intervals), stored
            )
        return changed

    def _build_cause_intervals(self, piece: Sequence[MinuteRange], annotations: Annotations) -> DataFrame:
        """Return a row of CAUSE_INTERVALS_DDL for each cluster of the piece, even without an interval."""
        lo, hi = min(range_.first for range_ in piece), max(range_.last for range_ in piece) + _MINUTE
        by_cluster = annotations.cause_intervals(lo, hi)
        rows = [
            (
                cluster_id,
                self._fleet.latency_objective_us(self._clusters[cluster_id]),
                [
                    (interval.starts, interval.ends, interval.home, interval.precedence)
                    for interval in by_cluster.get(cluster_id, ())
                ],
            )
            for cluster_id in sorted({range_.cluster_id for range_ in piece})
        ]
        return create_dataframe(self._spark, rows, CAUSE_INTERVALS_DDL)

    def _compute_broker_minutes(
        self, ranges: Sequence[MinuteRange]
    ) -> Iterator[tuple[list[MinuteRange], DataFrame, DataFrame, dict[str, ObservedMinutes]]]:
        """Yield the ranges piece by piece, as RANGES_DDL, with their broker-minutes and what these show."""
        late_us = round(self._fleet.agent_late_ms * 1000)
        initial_brokers = self._bounds.find_initial_brokers(ranges)
        for piece in split_ranges(ranges, _MAX_PIECE):
            bounds = self._build_range_frame(piece, initial_brokers)
            records = select_ranges(self._read_span(PROBE_MINUTES, piece), bounds)
            expected = materialize(compute_expected_brokers(records, bounds))
            clusters = (
                expected.groupBy("cluster_id").agg(*density_columns(), *last_expected_columns()).collect()
            )
            density = [
                (row["cluster_id"], row["shared"], row["reach"], self._clusters[row["cluster_id"]].retired)
                for row in clusters
            ]
            without_failures = materialize(
                compute_broker_minutes(
                    records,
                    expected,
                    create_dataframe(self._spark, density, DENSITY_DDL),
                    {row["shared"] for row in clusters},
                    late_us,
                )
            )
            brokers = add_failures(without_failures)
            observed = summarize_observed(clusters, brokers)
            initial_brokers |= {range_.cluster_id: find_brokers_at_end(range_, observed) for range_ in piece}
            yield piece, bounds, brokers, observed

    def _build_range_frame(
        self, piece: Sequence[MinuteRange], initial_brokers: Mapping[str, tuple[int, ...] | None]
    ) -> DataFrame:
        rows = [
            (
                range_.cluster_id,
                range_.first,
                range_.last,
                initial_brokers.get(range_.cluster_id),
                list(self._clusters[range_.cluster_id].retired),
            )
            for range_ in piece
        ]
        return create_dataframe(self._spark, rows, RANGES_DDL)

    def _read_span(self, table: Table, piece: Sequence[MinuteRange]) -> DataFrame:
        # The condition on days prunes partitions; the one on minutes skips the files of other hours.
        lo, hi = min(range_.first for range_ in piece), max(range_.last for range_ in piece)
        days = list_utc_days((range_.first, range_.last) for range_ in piece)
        return self._lake.read(table).where(F.col("day").isin(days) & F.col("minute").between(lo, hi))

    def _drop_uncounted(
        self, brokers: DataFrame, first_counted: Mapping[str, datetime], piece: Sequence[MinuteRange]
    ) -> DataFrame:
        """Drop the minutes before the cluster's first one that counts; usually there are none."""
        if all(
            range_.cluster_id in first_counted and first_counted[range_.cluster_id] <= range_.first
            for range_ in piece
        ):
            return brokers
        rows = create_dataframe(
            self._spark, list(first_counted.items()), "cluster_id string, first_counted timestamp"
        )
        return (
            brokers.join(F.broadcast(rows), "cluster_id")
            .where("minute >= first_counted")
            .drop("first_counted")
        )
