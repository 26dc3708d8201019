"""Silver to cluster-weeks and fleet-weeks."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.rows import dataframe
from fleetgauge_pipelines.jobs.settings import calendar, segment_rows, week_row
from fleetgauge_pipelines.slo.days import days_of
from fleetgauge_pipelines.slo.horizon import Stretch
from fleetgauge_pipelines.slo.revisions import OPEN, Row, latest, revisions
from fleetgauge_pipelines.tables import CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS, Table
from fleetgauge_pipelines.transforms.cluster_weeks import WEEKS_DDL, cluster_weeks
from fleetgauge_pipelines.transforms.fleet_weeks import FLEET_INPUT, SEGMENTS_DDL, fleet_weeks
from fleetgauge_probes.fleet import Fleet


class Gold:
    """Brings gold to what silver says, as silver is."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}

    def compute_weeks(self, stretches: Sequence[Stretch], clock: datetime) -> int:
        """Cluster-weeks that the stretches touch or that are due to close, and their fleet-weeks.

        From silver as it is; returns how many rows of gold that changed.
        """
        rows = self._weeks_to_compute(stretches, clock)
        if not rows:
            return 0
        weeks = dataframe(self._spark, rows, WEEKS_DDL)
        days = days_of((row[2], row[3]) for row in rows)
        minutes = self._lake.read(CLUSTER_MINUTES).where(F.col("day").isin(days))
        computed = cluster_weeks(minutes, weeks).withColumn("computed_at", F.lit(clock))
        names = sorted({row[1] for row in rows})
        stored = self._lake.rows(CLUSTER_WEEKS, F.col("week").isin(names))
        wanted = _revised(CLUSTER_WEEKS, _collect(computed), stored)
        changed = self._lake.bring_rows_to(CLUSTER_WEEKS, wanted, stored)
        return changed + self._fleet_weeks(wanted, names)

    def _weeks_to_compute(self, stretches: Sequence[Stretch], clock: datetime) -> list[tuple[Any, ...]]:
        spans = calendar(self._fleet)
        touched = {(one.cluster_id, span) for one in stretches for span in spans.between(one.lo, one.hi)}
        still_open = (
            self._lake.read(CLUSTER_WEEKS).where(F.col("revision") == OPEN).select("cluster_id", "week")
        )
        touched |= {
            (row["cluster_id"], span)
            for row in still_open.collect()
            if row["cluster_id"] in self._clusters and clock >= (span := spans.of_day(row["week"])).closes_at
        }
        return [
            week_row(self._fleet, self._clusters[cluster_id], span, clock)
            for cluster_id, span in sorted(touched, key=str)
        ]

    def _fleet_weeks(self, clusters: Sequence[Row], weeks: Sequence[date]) -> int:
        columns = [column for column in CLUSTER_WEEKS.columns if column.name in FLEET_INPUT]
        ddl = ", ".join(f"{column.name} {column.type.value}" for column in columns)
        rows = [
            tuple(row[column.name] for column in columns) for row in latest(clusters, ["cluster_id", "week"])
        ]
        segments = dataframe(self._spark, segment_rows(self._fleet), SEGMENTS_DDL)
        computed = fleet_weeks(dataframe(self._spark, rows, ddl), segments)
        stored = self._lake.rows(FLEET_WEEKS, F.col("week").isin(list(weeks)))
        return self._lake.bring_rows_to(
            FLEET_WEEKS, _revised(FLEET_WEEKS, _collect(computed), stored), stored
        )


def _revised(table: Table, computed: Sequence[Row], stored: Sequence[Row]) -> list[Row]:
    """All rows for the weeks of ``stored``: computed ones revised, the rest as they are."""
    key = [name for name in table.key if name != "revision"]
    content = [name for name in table.content if name not in ("revision_reason", "closed")]
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in stored:
        by_key[tuple(row[name] for name in key)].append(row)
    wanted: list[Row] = []
    for row in computed:
        wanted += revisions(row, by_key.pop(tuple(row[name] for name in key), ()), content)
    return wanted + [row for rows in by_key.values() for row in rows]


def _collect(rows: DataFrame) -> list[Row]:
    return [row.asDict() for row in rows.collect()]
