"""Compute gold from silver: cluster-weeks, fleet-weeks, burn causes and evidence."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.causes import count_by_segment
from fleetgauge_core.slo.corrected_week import WeekRow
from fleetgauge_core.slo.corrections import ExcludedRange, join_correction_ids
from fleetgauge_core.slo.minute_range import MinuteRange
from fleetgauge_core.slo.revisions import (
    OPEN,
    build_revisions,
    find_latest_revisions,
)
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_core.tables import (
    BURN_CAUSES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    Table,
)
from fleetgauge_core.tables.row_diff import RowOperation, diff_rows
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.annotations import Annotations
from fleetgauge_pipelines.jobs.evidence import EvidenceWriter
from fleetgauge_pipelines.jobs.gold_gate import GoldGate, WeekVerdicts
from fleetgauge_pipelines.jobs.settings import (
    define_week,
    list_segment_rows,
    make_week_calendar,
)
from fleetgauge_pipelines.jobs.weeks import CorrectedWeeks, build_week_rows, count_minutes
from fleetgauge_pipelines.quality.gate import QualityFacts
from fleetgauge_pipelines.quality.gold_facts import SilverCounts, compute_gold_facts
from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition
from fleetgauge_pipelines.transforms.fleet_weeks import compute_fleet_weeks

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class GoldResult:
    """How many rows of gold changed, and the gold suite's verdicts on the weeks that were computed."""

    rows_changed: int
    verdicts: WeekVerdicts


class GoldWriter:
    """Keeps the gold tables in step with silver."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet, gate: GoldGate) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._gate = gate
        self._evidence = EvidenceWriter(spark, lake, fleet)
        self._open: set[tuple[str, date]] = set()
        self._kept_from: datetime | None = None

    def open(self) -> None:
        """Read which weeks are open, and the first minute of silver that has not expired."""
        open_weeks = self._lake.table_store(CLUSTER_WEEKS).rows(
            pc.field("revision") == OPEN, ("cluster_id", "week")
        )
        self._open = {(row["cluster_id"], row["week"]) for row in open_weeks}
        self._kept_from = self._lake.kept_from(CLUSTER_MINUTES)

    def find_weeks_with_other_corrections(self, annotations: Annotations) -> list[MinuteRange]:
        """Return the stored weeks that were computed with other corrections than those now in force."""
        stored = self._lake.table_store(CLUSTER_WEEKS).rows(
            pc.field("cluster_id").isin(list(self._clusters)),
            ("cluster_id", "week", "revision", "corrections"),
        )
        calendar = make_week_calendar(self._fleet)

        @cache
        def corrections_in_force(span: WeekSpan) -> dict[str, str]:
            return _join_ids_by_cluster(annotations.excluded(span.start, span.end))

        return [
            MinuteRange(row["cluster_id"], span.start, span.end - _MINUTE)
            for row in find_latest_revisions(stored, ["cluster_id", "week"])
            if (span := calendar.week_of(row["week"]))
            and corrections_in_force(span).get(row["cluster_id"], "") != (row["corrections"] or "")
            and self._is_whole(span)
        ]

    def compute_weeks(
        self, ranges: Sequence[MinuteRange], annotations: Annotations, clock: datetime
    ) -> GoldResult:
        """Compute the cluster-weeks that the ranges touch, that are due to close or that are held back.

        Fleet-weeks, burn causes and evidence of these weeks are computed with them. A week that fails the
        gold suite is held back: none of its rows is written.
        """
        definitions = self._list_weeks_to_compute(ranges, clock)
        if not definitions:
            return GoldResult(0, WeekVerdicts())
        weeks = self._correct_weeks(definitions, annotations)
        computed = weeks.compute()
        dates = sorted({week.week for week in definitions})
        stored = self._lake.table_store(CLUSTER_WEEKS).rows(pc.field("week").isin(dates))
        wanted = _revise(CLUSTER_WEEKS, build_week_rows(computed, clock), stored)
        fleet, fleet_stored = self._compute_fleet_weeks(wanted, dates)
        verdicts = self._gate.judge(self._compute_facts(dates, wanted, fleet, count_minutes(computed)))
        passed = [week for week in dates if week not in verdicts.held_back]
        wanted, before = _select_weeks(passed, wanted), _select_weeks(passed, stored)
        differences = diff_rows(CLUSTER_WEEKS, wanted, before)
        written = [row for operation, row in differences if operation is not RowOperation.DELETE]
        changed = self._evidence.update(weeks, definitions, written)
        changed += self._update_burn_causes(wanted, passed)
        changed += self._lake.table_store(FLEET_WEEKS).replace(
            _select_weeks(passed, fleet), _select_weeks(passed, fleet_stored), {"week": passed}
        )
        # Written last: the rows of this table say which weeks are due, so a batch that fails before this
        # commit computes the same weeks again.
        changed += self._lake.table_store(CLUSTER_WEEKS).replace(wanted, before, {"week": passed})
        self._open = {(cluster_id, week) for cluster_id, week in self._open if week not in passed}
        self._open |= {(row["cluster_id"], row["week"]) for row in wanted if row["revision"] == OPEN}
        return GoldResult(changed, verdicts)

    def _correct_weeks(self, weeks: Sequence[WeekDefinition], annotations: Annotations) -> CorrectedWeeks:
        lo, hi = min(week.starts for week in weeks), max(week.ends for week in weeks)
        clusters = {week.cluster_id for week in weeks}
        exclusions = [range_ for range_ in annotations.excluded(lo, hi) if range_.cluster_id in clusters]
        return CorrectedWeeks(self._spark, self._lake, weeks, exclusions)

    def _compute_facts(
        self,
        weeks: Sequence[date],
        clusters: Sequence[WeekRow],
        fleet: Sequence[WeekRow],
        silver: Mapping[tuple[str, date], SilverCounts],
    ) -> dict[date, QualityFacts]:
        """Return by week the facts for the gold suite, of the clusters that the fleet file still has."""
        own = [
            row
            for row in find_latest_revisions(clusters, ["cluster_id", "week"])
            if row["cluster_id"] in self._clusters
        ]
        of_fleet = find_latest_revisions(fleet, [name for name in FLEET_WEEKS.key if name != "revision"])
        return {
            week: compute_gold_facts(
                [row for row in own if row["week"] == week],
                [row for row in of_fleet if row["week"] == week],
                {
                    cluster_id: silver[cluster_id, week]
                    for cluster_id in self._clusters
                    if (cluster_id, week) in silver
                },
            )
            for week in weeks
        }

    def _list_weeks_to_compute(self, ranges: Sequence[MinuteRange], clock: datetime) -> list[WeekDefinition]:
        calendar = make_week_calendar(self._fleet)
        weeks = {
            (range_.cluster_id, span)
            for range_ in ranges
            for span in calendar.weeks_between(range_.first, range_.last)
        }
        weeks |= {
            (cluster_id, span)
            for cluster_id, week in self._open
            if cluster_id in self._clusters and clock >= (span := calendar.week_of(week)).closes_at
        }
        weeks |= {
            (cluster_id, calendar.week_of(week))
            for week in self._gate.held_back
            for cluster_id in self._clusters
        }
        return [
            define_week(self._fleet, self._clusters[cluster_id], span, clock)
            for cluster_id, span in sorted(weeks, key=str)
            if self._is_whole(span)
        ]

    def _is_whole(self, span: WeekSpan) -> bool:
        # Some minutes of an older week have expired; the week keeps the values computed from all of them.
        return self._kept_from is None or span.start >= self._kept_from

    def _compute_fleet_weeks(
        self, clusters: Sequence[WeekRow], weeks: Sequence[date]
    ) -> tuple[list[WeekRow], list[dict[str, Any]]]:
        """Return the rows that gold/fleet_weeks should hold of the weeks, and those that it holds."""
        latest = find_latest_revisions(clusters, ["cluster_id", "week"])
        computed = compute_fleet_weeks(latest, list_segment_rows(self._fleet))
        stored = self._lake.table_store(FLEET_WEEKS).rows(pc.field("week").isin(list(weeks)))
        return _revise(FLEET_WEEKS, computed, stored), stored

    def _update_burn_causes(self, clusters: Sequence[WeekRow], weeks: Sequence[date]) -> int:
        newest = find_latest_revisions(clusters, ["cluster_id", "week"])
        wanted = [
            dict(zip(BURN_CAUSES.column_names, (week, *group, *counts), strict=True))
            for week in weeks
            for group, counts in count_by_segment(
                ((row["cluster_id"], row["causes"] or {}) for row in newest if row["week"] == week),
                list_segment_rows(self._fleet),
            ).items()
        ]
        causes = self._lake.table_store(BURN_CAUSES)
        return causes.replace(wanted, causes.rows(pc.field("week").isin(list(weeks))), {"week": weeks})


def _revise(table: Table, computed: Sequence[WeekRow], stored: Sequence[WeekRow]) -> list[WeekRow]:
    """Return all rows for the weeks of ``stored``: revisions of computed rows, other rows unchanged."""
    key = [name for name in table.key if name != "revision"]
    content = [name for name in table.compared_columns if name not in ("revision_reason", "closed")]
    by_key: dict[tuple[Any, ...], list[WeekRow]] = defaultdict(list)
    for row in stored:
        by_key[tuple(row[name] for name in key)].append(row)
    wanted: list[WeekRow] = []
    for row in computed:
        wanted += build_revisions(row, by_key.pop(tuple(row[name] for name in key), ()), content)
    return wanted + [row for rows in by_key.values() for row in rows]


def _select_weeks(weeks: Sequence[date], rows: Sequence[WeekRow]) -> list[WeekRow]:
    return [row for row in rows if row["week"] in weeks]


def _join_ids_by_cluster(exclusions: Iterable[ExcludedRange]) -> dict[str, str]:
    correction_ids: dict[str, list[str]] = defaultdict(list)
    for range_ in exclusions:
        correction_ids[range_.cluster_id].append(range_.correction_id)
    return {cluster_id: join_correction_ids(ids) for cluster_id, ids in correction_ids.items()}
