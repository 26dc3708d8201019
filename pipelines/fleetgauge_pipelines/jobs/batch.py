"""One batch of raw records through bronze, silver and gold.

Each step makes its table a function of all of bronze for the keys that the batch touches. So a batch is
idempotent: it may be repeated, or fail at any point and be repeated, and the tables come out the same.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.minute_range import MinuteRange, merge_ranges
from fleetgauge_core.slo.weeks import WEEK_CLOSING_DELAY
from fleetgauge_core.tables import QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.annotations import Annotations, find_changed_cause_intervals, read_annotations
from fleetgauge_pipelines.jobs.bronze import BronzeWriter, IngestResult
from fleetgauge_pipelines.jobs.change_costs import MAX_IN_BATCH, ChangeCostWriter
from fleetgauge_pipelines.jobs.gold import GoldResult, GoldWriter
from fleetgauge_pipelines.jobs.gold_gate import SUITE as GOLD_SUITE
from fleetgauge_pipelines.jobs.gold_gate import GoldGate
from fleetgauge_pipelines.jobs.recovery_weeks import RecoveryWeeksWriter
from fleetgauge_pipelines.jobs.silver import SilverWriter
from fleetgauge_pipelines.jobs.silver_bounds import SilverBounds
from fleetgauge_pipelines.quality.gate import BATCH_SUITE_FILE, GOLD_SUITE_FILE, QualityGate, QualityVerdict
from fleetgauge_pipelines.quality.silver_facts import SilverFacts

SUITE = "batch"
#: Every week that is still open began less than this ago: a week's length plus the time until it closes.
_MAX_OPEN_WEEK_AGE = timedelta(days=7) + WEEK_CLOSING_DELAY


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch did: counts of records and rows, and the quality gate's verdicts.

    ``released`` rows left quarantine; ``weeks_held_back`` failed the gold suite and were not written.
    """

    ingested: IngestResult
    silver_rows_changed: int
    gold_rows_changed: int
    released: int
    verdicts: tuple[QualityVerdict, ...]
    seconds: float
    weeks_held_back: tuple[date, ...] = ()


class Pipeline:
    """The only writer of a lake's bronze, silver and gold tables.

    ``gold_suite`` is the file of the expectations that a week must meet before it is written.
    """

    def __init__(
        self, spark: SparkSession, lake: Lake, fleet: Fleet, gold_suite: Path = GOLD_SUITE_FILE
    ) -> None:
        self._lake = lake
        self._fleet = fleet
        self._annotations: Annotations | None = None
        self._annotations_before: Annotations | None = None
        self._bronze = BronzeWriter(spark, lake, fleet)
        self._bounds = SilverBounds(lake, fleet)
        self._silver = SilverWriter(spark, lake, fleet, self._bounds)
        self._gold_gate = GoldGate(lake, gold_suite)
        self._gold = GoldWriter(spark, lake, fleet, self._gold_gate)
        self._recovery_weeks = RecoveryWeeksWriter(lake, fleet)
        self._change_costs = ChangeCostWriter(lake, fleet, self._bounds)

    def open(self) -> None:
        """Create missing tables; read what they hold, which days expired, and which weeks are held back."""
        if self._lake.create_tables():
            return
        self._bronze.open()
        self._bounds.open()
        self._gold.open()
        self._gold_gate.open()
        self._recovery_weeks.open()
        self._change_costs.open()

    def warm_up(self, clock: datetime) -> None:
        """Load now what the first batch would otherwise wait for: great-expectations and Python workers."""
        self._gold_gate.warm_up()
        _ = self._gate
        self._bronze.warm_up(clock)

    def process(
        self,
        raw: DataFrame,
        batch: str,
        clock: datetime,
        oldest: datetime | None = None,
        accepts_unlikely: bool = False,
    ) -> BatchResult:
        """Process one batch from raw records to weeks and return what it did.

        ``raw`` has the columns value, source, position and hint. Records of minutes before ``oldest`` go to
        quarantine, and unlikely ones unless a person accepts them. A record that was in quarantine and is
        accepted now is removed from it.
        """
        started = time.monotonic()
        ingested, accepted = self._bronze.ingest(raw, clock, oldest, accepts_unlikely)
        result = self._derive_tables(ingested, batch, clock)
        released = self._bronze.release(accepted)
        return replace(result, released=released, seconds=time.monotonic() - started)

    def expect_annotations(self, without_events: Collection[str] = ()) -> None:
        """Remember the present annotations; the next batch also computes what differs from them by then.

        A pipeline that has just started otherwise computes the causes of open weeks alone. Changes with the
        IDs ``without_events`` count as if they were not there yet: who added them may have been interrupted.
        """
        self._annotations_before = read_annotations(self._lake, self._fleet, without_events)

    def apply_annotations(self, batch: str, clock: datetime) -> BatchResult:
        """Compute the causes and weeks that changed annotations touch, without new records."""
        return self._derive_tables(IngestResult(0, 0, 0, 0, {}), batch, clock)

    def compute_change_costs(self, clock: datetime) -> int:
        """Compute the costs of all changes that have ended; return how many rows changed."""
        annotations = read_annotations(self._lake, self._fleet)
        return self._change_costs.update(annotations.changes, (), clock, None)

    def complete_batch(self, batch: str, clock: datetime) -> None:
        """Compute the tables for records that an interrupted batch stored, and that no batch reads again.

        These are among the records that were stored since the last complete batch.
        """
        complete = self._lake.table_store(QUALITY).rows(pc.field("suite") == SUITE, ["at"])
        since = max((row["at"] for row in complete), default=None)
        self._derive_tables(self._bronze.find_stored(since), batch, clock)

    def _derive_tables(self, ingested: IngestResult, batch: str, clock: datetime) -> BatchResult:
        """Compute silver and gold for the minutes with new records, and record the verdicts."""
        annotations = read_annotations(self._lake, self._fleet)
        # Before silver is extended, because the minutes that this batch adds are computed with these
        # annotations anyway.
        reannotated = self._find_reannotated_ranges(annotations, clock)
        touched = self._bounds.find_ranges_to_compute(ingested.touched, clock)
        silver_changed, silver_facts = self._silver.update(touched, ingested.touched, annotations)
        silver_changed += self._silver.recompute_causes(reannotated, annotations)
        gold = self._gold.compute_weeks([*touched, *reannotated], annotations, clock)
        gold_changed = gold.rows_changed + self._recovery_weeks.compute_weeks(clock)
        gold_changed += self._change_costs.update(annotations.changes, touched, clock, MAX_IN_BATCH)
        self._annotations = annotations
        verdicts = self._judge(ingested, silver_facts)
        self._record(batch, clock, verdicts, gold)
        return BatchResult(
            ingested,
            silver_changed,
            gold_changed,
            released=0,
            verdicts=verdicts + gold.verdicts.verdicts,
            seconds=0.0,
            weeks_held_back=gold.verdicts.held_back,
        )

    def _find_reannotated_ranges(self, annotations: Annotations, clock: datetime) -> list[MinuteRange]:
        """Return the stored minutes whose annotations changed since they were last computed."""
        before = self._annotations or self._annotations_before
        ranges: list[MinuteRange | None] = []
        if self._annotations is None:
            # Annotations may have changed while no pipeline ran; all weeks that are still open take them
            # over.
            ranges += [
                self._bounds.clip_to_stored(cluster.id, clock - _MAX_OPEN_WEEK_AGE, None)
                for cluster in self._fleet.clusters
            ]
        if before is not None:
            ranges += [
                self._bounds.clip_to_stored(interval.cluster_id, interval.starts, interval.ends)
                for interval in find_changed_cause_intervals(before, annotations)
            ]
        if before is None or before.corrections != annotations.corrections:
            ranges += self._gold.find_weeks_with_other_corrections(annotations)
        return merge_ranges(range_ for range_ in ranges if range_ is not None)

    def compute_weeks(self, ranges: Sequence[MinuteRange], batch: str, clock: datetime) -> int:
        """Compute the weeks that the ranges touch, are due to close or are held back, and recovery's weeks.

        Return how many rows of gold changed.
        """
        gold = self._gold.compute_weeks(ranges, read_annotations(self._lake, self._fleet), clock)
        changed = gold.rows_changed + self._recovery_weeks.compute_weeks(clock)
        if gold.verdicts.facts:
            self._record(batch, clock, (), gold)
        return changed

    @cached_property
    def _gate(self) -> QualityGate:
        # Created for the first batch: great-expectations takes seconds to import.
        return QualityGate(BATCH_SUITE_FILE)

    def _judge(self, ingested: IngestResult, silver: SilverFacts) -> tuple[QualityVerdict, ...]:
        accounted = ingested.stored + ingested.replayed + ingested.quarantined
        facts = {"received": ingested.received, "accounted_for": accounted} | silver
        return tuple(result.verdict_for_row(0, facts) for result in self._gate.judge([facts]))

    def _record(
        self, batch: str, clock: datetime, verdicts: Iterable[QualityVerdict], gold: GoldResult
    ) -> None:
        # One commit, and the batch's last one: a reader that sees these rows finds gold written.
        wanted = [_row(batch, clock, SUITE, batch, verdict) for verdict in verdicts]
        wanted += [
            _row(batch, clock, GOLD_SUITE, f"{batch}/{GOLD_SUITE}", verdict)
            for verdict in gold.verdicts.verdicts
        ]
        quality = self._lake.table_store(QUALITY)
        stored = quality.rows((pc.field("batch") == batch) & pc.field("week").is_null())
        changed, replaced = self._gold_gate.find_state_changes(gold.verdicts, batch, clock)
        checks = {row["check_id"] for row in (*wanted, *changed, *stored, *replaced)}
        quality.replace([*wanted, *changed], [*stored, *replaced], {"check_id": checks})


def _row(batch: str, clock: datetime, suite: str, prefix: str, verdict: QualityVerdict) -> dict[str, Any]:
    check_id = f"{prefix}/{verdict.expectation}"
    outcome = (verdict.expectation, verdict.success, verdict.observed)
    return dict(zip(QUALITY.column_names, (check_id, clock, batch, suite, *outcome, None), strict=True))
