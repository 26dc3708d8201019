"""Some cluster-weeks as they count: their minutes, and their levels with and without corrections."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.slo.corrected import Row, beside_raw
from fleetgauge_core.slo.corrections import Excluded, ids
from fleetgauge_core.slo.days import days_of
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.transforms.cluster_weeks import WEEKS_DDL, cluster_weeks
from fleetgauge_pipelines.transforms.corrections import EXCLUDED_DDL, applied, corrected_minutes

Key = tuple[str, date]


class CountedWeeks:
    """``rows`` as WEEKS_DDL; ``spans`` are what corrections take out of them."""

    def __init__(
        self, spark: SparkSession, lake: Lake, rows: Sequence[tuple[Any, ...]], spans: Sequence[Excluded]
    ) -> None:
        self.spark = spark
        self._lake = lake
        self._rows = rows
        self._spans = spans
        self.days = days_of((row[2], row[3]) for row in rows)

    def levels(self, clock: datetime) -> list[Row]:
        """gold/cluster_weeks without revisions."""
        raw = self._levels(self._rows, self.minutes)
        applied_to = self._applied()
        corrected = self._levels([row for row in self._rows if _key(row) in applied_to], self.counted)
        return [
            {**beside_raw(row, corrected.get(key), applied_to.get(key, "")), "computed_at": clock}
            for key, row in raw.items()
        ]

    @property
    def frame(self) -> DataFrame:
        return dataframe(self.spark, self._rows, WEEKS_DDL)

    @cached_property
    def counted(self) -> DataFrame:
        """The cluster-minutes that count."""
        if not self._spans:
            return self.minutes
        return corrected_minutes(self.minutes, self.client, self._excluded)

    @property
    def client(self) -> DataFrame:
        """The client leg's broker-minutes of the weeks' days."""
        rows = self._lake.read(BROKER_MINUTES).where(F.col("day").isin(self.days))
        return rows.where(F.col("leg") == "client")

    @property
    def minutes(self) -> DataFrame:
        return self._lake.read(CLUSTER_MINUTES).where(F.col("day").isin(self.days))

    @property
    def _excluded(self) -> DataFrame:
        rows = [
            (one.correction_id, one.cluster_id, one.broker_id, one.starts, one.ends) for one in self._spans
        ]
        return dataframe(self.spark, rows, EXCLUDED_DDL)

    def _levels(self, rows: Sequence[tuple[Any, ...]], minutes: DataFrame) -> dict[Key, Row]:
        if not rows:
            return {}
        found = cluster_weeks(minutes, dataframe(self.spark, rows, WEEKS_DDL)).collect()
        return {(row["cluster_id"], row["week"]): row.asDict() for row in found}

    def _applied(self) -> dict[Key, str]:
        """The ids of the corrections that took anything out of each week."""
        if not self._spans:
            return {}
        found: dict[Key, list[str]] = defaultdict(list)
        for row in applied(self.minutes, self.client, self._excluded, self.frame).collect():
            found[row["cluster_id"], row["week"]].append(row["correction_id"])
        return {key: ids(of_week) for key, of_week in found.items()}


def _key(row: tuple[Any, ...]) -> Key:
    return row[0], row[1]
