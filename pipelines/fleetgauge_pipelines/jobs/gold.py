"""Silver to cluster-weeks, fleet-weeks, causes and evidence."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.causes import by_segment
from fleetgauge_core.slo.corrections import Excluded, ids
from fleetgauge_core.slo.minute_range import Stretch
from fleetgauge_core.slo.revisions import (
    OPEN,
    Row,
    latest,
    revisions,
)
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_core.tables import (
    BURN_CAUSES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    Table,
)
from fleetgauge_core.tables.row_diff import Change, row_changes
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.jobs.annotations import Said
from fleetgauge_pipelines.jobs.evidence import Evidence
from fleetgauge_pipelines.jobs.gold_gate import GoldGate, Judged
from fleetgauge_pipelines.jobs.settings import calendar, segment_rows, week_row
from fleetgauge_pipelines.jobs.weeks import CountedWeeks
from fleetgauge_pipelines.quality.gate import Facts
from fleetgauge_pipelines.quality.gold_facts import SilverCounts, gold_facts, silver_counts
from fleetgauge_pipelines.transforms.fleet_weeks import FLEET_INPUT, SEGMENTS_DDL, fleet_weeks

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Computed:
    """How many rows of gold changed, and what the gate said of the weeks before."""

    rows_changed: int
    judged: Judged


class Gold:
    """Brings gold to what silver says, as silver is."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet, gate: GoldGate) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._gate = gate
        self._evidence = Evidence(lake, fleet)
        self._open: set[tuple[str, date]] = set()
        self._kept_from: datetime | None = None

    def open(self) -> None:
        """Learn which weeks are open, and from when on silver is whole."""
        still_open = self._lake.small(CLUSTER_WEEKS).rows(
            pc.field("revision") == OPEN, ("cluster_id", "week")
        )
        self._open = {(row["cluster_id"], row["week"]) for row in still_open}
        self._kept_from = self._lake.kept_from(CLUSTER_MINUTES)

    def corrected_weeks(self, said: Said) -> list[Stretch]:
        """The weeks that hold other corrections than those that now cover them."""
        stored = self._lake.small(CLUSTER_WEEKS).rows(
            pc.field("cluster_id").isin(list(self._clusters)),
            ("cluster_id", "week", "revision", "corrections"),
        )
        spans = calendar(self._fleet)

        @cache
        def covering(span: WeekSpan) -> dict[str, str]:
            return _ids_by_cluster(said.excluded(span.start, span.end))

        return [
            Stretch(row["cluster_id"], span.start, span.end - _MINUTE)
            for row in latest(stored, ["cluster_id", "week"])
            if (span := spans.of_day(row["week"]))
            and covering(span).get(row["cluster_id"], "") != (row["corrections"] or "")
            and self._is_whole(span)
        ]

    def compute_weeks(self, stretches: Sequence[Stretch], said: Said, clock: datetime) -> Computed:
        """Cluster-weeks that the stretches touch, that are due to close or held back; and all of gold beside.

        From silver as it is. A week that the gate holds back stays as it was.
        """
        rows = self._weeks_to_compute(stretches, clock)
        if not rows:
            return Computed(0, Judged())
        weeks = self._weeks(rows, said)
        names = sorted({row[1] for row in rows})
        stored = self._lake.small(CLUSTER_WEEKS).rows(pc.field("week").isin(names))
        wanted = _revised(CLUSTER_WEEKS, weeks.levels(clock), stored)
        fleet, fleet_stored = self._fleet_weeks(wanted, names)
        counts = silver_counts(weeks.minutes, weeks.frame)
        judged = self._gate.judge(self._facts(names, wanted, fleet, counts))
        good = [week for week in names if week not in judged.held_back]
        wanted, before = _of(good, wanted), _of(good, stored)
        differing = row_changes(CLUSTER_WEEKS, wanted, before)
        new = [row for change, row in differing if change is not Change.DELETE]
        changed = self._evidence.bring_up(weeks, new)
        changed += self._burn_causes(wanted, good)
        changed += self._lake.small(FLEET_WEEKS).replace(_of(good, fleet), _of(good, fleet_stored))
        # Last: by its rows a week is known to be due, so what breaks off before is done again.
        changed += self._lake.small(CLUSTER_WEEKS).replace(wanted, before)
        self._open = {key for key in self._open if key[1] not in good}
        self._open |= {(row["cluster_id"], row["week"]) for row in wanted if row["revision"] == OPEN}
        return Computed(changed, judged)

    def _weeks(self, rows: Sequence[tuple[Any, ...]], said: Said) -> CountedWeeks:
        lo, hi = min(row[2] for row in rows), max(row[3] for row in rows)
        clusters = {row[0] for row in rows}
        return CountedWeeks(
            self._spark,
            self._lake,
            rows,
            [one for one in said.excluded(lo, hi) if one.cluster_id in clusters],
        )

    def _facts(
        self,
        weeks: Sequence[date],
        clusters: Sequence[Row],
        fleet: Sequence[Row],
        silver: Mapping[tuple[str, date], SilverCounts],
    ) -> dict[date, Facts]:
        """Of the clusters in the fleet file: what has left it is nobody's to compute."""
        own = [row for row in latest(clusters, ["cluster_id", "week"]) if row["cluster_id"] in self._clusters]
        of_fleet = latest(fleet, [name for name in FLEET_WEEKS.key if name != "revision"])
        return {
            week: gold_facts(
                [row for row in own if row["week"] == week],
                [row for row in of_fleet if row["week"] == week],
                {one: silver[one, week] for one in self._clusters if (one, week) in silver},
            )
            for week in weeks
        }

    def _weeks_to_compute(self, stretches: Sequence[Stretch], clock: datetime) -> list[tuple[Any, ...]]:
        spans = calendar(self._fleet)
        touched = {(one.cluster_id, span) for one in stretches for span in spans.between(one.lo, one.hi)}
        touched |= {
            (cluster_id, span)
            for cluster_id, week in self._open
            if cluster_id in self._clusters and clock >= (span := spans.of_day(week)).closes_at
        }
        touched |= {(one, spans.of_day(week)) for week in self._gate.held_back for one in self._clusters}
        return [
            week_row(self._fleet, self._clusters[cluster_id], span, clock)
            for cluster_id, span in sorted(touched, key=str)
            if self._is_whole(span)
        ]

    def _is_whole(self, span: WeekSpan) -> bool:
        """Of an older week a part has expired; it stays as it was when it was whole."""
        return self._kept_from is None or span.start >= self._kept_from

    def _fleet_weeks(
        self, clusters: Sequence[Row], weeks: Sequence[date]
    ) -> tuple[list[Row], list[dict[str, Any]]]:
        """What the table should hold of the weeks, and what it holds."""
        columns = [column for column in CLUSTER_WEEKS.columns if column.name in FLEET_INPUT]
        ddl = ", ".join(f"{column.name} {column.type.value}" for column in columns)
        rows = [
            tuple(row[column.name] for column in columns) for row in latest(clusters, ["cluster_id", "week"])
        ]
        segments = dataframe(self._spark, segment_rows(self._fleet), SEGMENTS_DDL)
        computed = fleet_weeks(dataframe(self._spark, rows, ddl), segments)
        stored = self._lake.small(FLEET_WEEKS).rows(pc.field("week").isin(list(weeks)))
        return _revised(FLEET_WEEKS, _collect(computed), stored), stored

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
        causes = self._lake.small(BURN_CAUSES)
        return causes.replace(wanted, causes.rows(pc.field("week").isin(list(weeks))))


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


def _of(weeks: Sequence[date], rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["week"] in weeks]


def _collect(rows: DataFrame) -> list[Row]:
    return [row.asDict() for row in rows.collect()]


def _ids_by_cluster(spans: Iterable[Excluded]) -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in spans:
        found[one.cluster_id].append(one.correction_id)
    return {cluster_id: ids(of_cluster) for cluster_id, of_cluster in found.items()}
