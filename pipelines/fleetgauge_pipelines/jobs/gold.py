"""Silver to cluster-weeks, fleet-weeks, causes and evidence."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.rows import dataframe
from fleetgauge_pipelines.jobs.evidence import Evidence
from fleetgauge_pipelines.jobs.said import Said
from fleetgauge_pipelines.jobs.settings import calendar, segment_rows, week_row
from fleetgauge_pipelines.jobs.weeks import CountedWeeks
from fleetgauge_pipelines.slo.causes import by_segment
from fleetgauge_pipelines.slo.corrections import Excluded, ids
from fleetgauge_pipelines.slo.horizon import Stretch
from fleetgauge_pipelines.slo.revisions import OPEN, Row, latest, revisions
from fleetgauge_pipelines.slo.weeks import WeekSpan
from fleetgauge_pipelines.tables import BURN_CAUSES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS, Table
from fleetgauge_pipelines.tables.changes import Change, row_changes
from fleetgauge_pipelines.transforms.fleet_weeks import FLEET_INPUT, SEGMENTS_DDL, fleet_weeks
from fleetgauge_probes.fleet import Fleet

_MINUTE = timedelta(minutes=1)


class Gold:
    """Brings gold to what silver says, as silver is."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._evidence = Evidence(lake, fleet)

    def corrected_weeks(self, said: Said) -> list[Stretch]:
        """The weeks that hold other corrections than those that now cover them.

        A closed week whose minutes have begun to expire is final.
        """
        stored = self._lake.rows(
            CLUSTER_WEEKS,
            F.col("cluster_id").isin(list(self._clusters)),
            ("cluster_id", "week", "revision", "closed", "corrections"),
        )
        oldest = self._lake.first_day(CLUSTER_MINUTES)
        spans = calendar(self._fleet)

        @cache
        def covering(span: WeekSpan) -> dict[str, str]:
            return _ids_by_cluster(said.excluded(span.start, span.end))

        return [
            Stretch(row["cluster_id"], span.start, span.end - _MINUTE)
            for row in latest(stored, ["cluster_id", "week"])
            if (span := spans.of_day(row["week"]))
            and covering(span).get(row["cluster_id"], "") != (row["corrections"] or "")
            and not (row["closed"] and oldest is not None and span.start.date() < oldest)
        ]

    def compute_weeks(self, stretches: Sequence[Stretch], said: Said, clock: datetime) -> int:
        """Cluster-weeks that the stretches touch or that are due to close, and what is made of them.

        From silver as it is; returns how many rows of gold that changed.
        """
        rows = self._weeks_to_compute(stretches, clock)
        if not rows:
            return 0
        weeks = self._weeks(rows, said)
        names = sorted({row[1] for row in rows})
        stored = self._lake.rows(CLUSTER_WEEKS, F.col("week").isin(names))
        wanted = _revised(CLUSTER_WEEKS, weeks.levels(clock), stored)
        # First, for a week that is closed is not looked at again.
        new = [
            row for change, row in row_changes(CLUSTER_WEEKS, wanted, stored) if change is not Change.DELETE
        ]
        changed = self._evidence.bring_up(weeks, new)
        changed += self._lake.bring_rows_to(CLUSTER_WEEKS, wanted, stored)
        changed += self._fleet_weeks(wanted, names)
        return changed + self._burn_causes(wanted, names)

    def _weeks(self, rows: Sequence[tuple[Any, ...]], said: Said) -> CountedWeeks:
        lo, hi = min(row[2] for row in rows), max(row[3] for row in rows)
        clusters = {row[0] for row in rows}
        return CountedWeeks(
            self._spark,
            self._lake,
            rows,
            [one for one in said.excluded(lo, hi) if one.cluster_id in clusters],
        )

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

    def _burn_causes(self, clusters: Sequence[Row], weeks: Sequence[date]) -> int:
        newest = latest(clusters, ["cluster_id", "week"])
        wanted = [
            dict(zip(BURN_CAUSES.names, (week, *group, *counts), strict=True))
            for week in weeks
            for group, counts in by_segment(
                ((row["cluster_id"], row["causes"] or {}) for row in newest if row["week"] == week),
                segment_rows(self._fleet),
            ).items()
        ]
        stored = self._lake.rows(BURN_CAUSES, F.col("week").isin(list(weeks)))
        return self._lake.bring_rows_to(BURN_CAUSES, wanted, stored)


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


def _ids_by_cluster(spans: Iterable[Excluded]) -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in spans:
        found[one.cluster_id].append(one.correction_id)
    return {cluster_id: ids(of_cluster) for cluster_id, of_cluster in found.items()}
