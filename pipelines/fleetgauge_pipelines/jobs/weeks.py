"""Cluster-weeks that are being computed: their minutes, and their levels with and without corrections."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.slo.corrected_week import WeekRow, add_raw_columns
from fleetgauge_core.slo.corrections import ExcludedRange, join_correction_ids
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.jobs.settings import WeekDefinition
from fleetgauge_pipelines.transforms.cluster_weeks import WEEKS_DDL, compute_cluster_weeks
from fleetgauge_pipelines.transforms.corrections import (
    EXCLUDED_DDL,
    apply_corrections,
    find_applied_corrections,
)

ClusterWeekKey = tuple[str, date]


class CorrectedWeeks:
    """The weeks to compute, and the ranges that corrections exclude from them.

    ``days`` are the UTC days that the weeks touch, by which bronze and silver are partitioned.
    """

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        weeks: Sequence[WeekDefinition],
        exclusions: Sequence[ExcludedRange],
    ) -> None:
        self.spark = spark
        self._lake = lake
        self._weeks = weeks
        self._exclusions = exclusions
        self.days = list_utc_days((week.starts, week.ends) for week in weeks)

    def compute_levels(self, clock: datetime) -> list[WeekRow]:
        """Return rows of gold/cluster_weeks without their revision columns."""
        raw = self._compute_levels(self._weeks, self.minutes)
        corrections = self._find_corrections_by_week()
        corrected_weeks = [week for week in self._weeks if (week.cluster_id, week.week) in corrections]
        corrected = self._compute_levels(corrected_weeks, self.counted_minutes)
        return [
            {**add_raw_columns(row, corrected.get(key), corrections.get(key, "")), "computed_at": clock}
            for key, row in raw.items()
        ]

    @property
    def frame(self) -> DataFrame:
        """Return the weeks with the columns of WEEKS_DDL."""
        return create_dataframe(self.spark, self._weeks, WEEKS_DDL)

    @cached_property
    def counted_minutes(self) -> DataFrame:
        """Return the cluster-minutes of the weeks' days after corrections."""
        if not self._exclusions:
            return self.minutes
        return apply_corrections(self.minutes, self.client_broker_minutes, self._exclusion_frame)

    @property
    def client_broker_minutes(self) -> DataFrame:
        """Return the client leg's broker-minutes of the weeks' days."""
        rows = self._lake.read(BROKER_MINUTES).where(F.col("day").isin(self.days))
        return rows.where(F.col("leg") == "client")

    @property
    def minutes(self) -> DataFrame:
        """Return the cluster-minutes of the weeks' days, without corrections."""
        return self._lake.read(CLUSTER_MINUTES).where(F.col("day").isin(self.days))

    @property
    def _exclusion_frame(self) -> DataFrame:
        rows = [
            (range_.correction_id, range_.cluster_id, range_.broker_id, range_.starts, range_.ends)
            for range_ in self._exclusions
        ]
        return create_dataframe(self.spark, rows, EXCLUDED_DDL)

    def _compute_levels(
        self, weeks: Sequence[WeekDefinition], minutes: DataFrame
    ) -> dict[ClusterWeekKey, WeekRow]:
        if not weeks:
            return {}
        rows = compute_cluster_weeks(minutes, create_dataframe(self.spark, weeks, WEEKS_DDL)).collect()
        return {(row["cluster_id"], row["week"]): row.asDict() for row in rows}

    def _find_corrections_by_week(self) -> dict[ClusterWeekKey, str]:
        """Return for each week that corrections changed their ids, in the form of gold's column."""
        if not self._exclusions:
            return {}
        applied = find_applied_corrections(
            self.minutes, self.client_broker_minutes, self._exclusion_frame, self.frame
        )
        correction_ids: dict[ClusterWeekKey, list[str]] = defaultdict(list)
        for row in applied.collect():
            correction_ids[row["cluster_id"], row["week"]].append(row["correction_id"])
        return {week: join_correction_ids(ids) for week, ids in correction_ids.items()}
