"""One batch of raw records through bronze, silver and gold.

Every step brings a table to what all of bronze says for the keys that the
batch touches, so a batch may be repeated, or break off anywhere and be
repeated, and the tables come out the same.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.minute_range import Stretch, united
from fleetgauge_core.slo.weeks import CLOSES_AFTER
from fleetgauge_core.tables import QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.annotations import Said, differing, read_said
from fleetgauge_pipelines.jobs.bronze import Bronze, Ingested
from fleetgauge_pipelines.jobs.gold import Computed, Gold
from fleetgauge_pipelines.jobs.gold_gate import SUITE as GOLD_SUITE
from fleetgauge_pipelines.jobs.gold_gate import GoldGate
from fleetgauge_pipelines.jobs.recovery_weeks import RecoveryWeeks
from fleetgauge_pipelines.jobs.silver import Silver
from fleetgauge_pipelines.jobs.silver_bounds import Horizons
from fleetgauge_pipelines.quality.gate import BATCH, GOLD, Gate, Verdict
from fleetgauge_pipelines.quality.silver_facts import Facts

SUITE = "batch"
#: A week, and the time until it closes.
_OPEN = timedelta(days=7) + CLOSES_AFTER


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did; ``weeks_held_back`` are those that the gate of gold did not let pass."""

    ingested: Ingested
    silver_rows_changed: int
    gold_rows_changed: int
    released: int
    verdicts: tuple[Verdict, ...]
    seconds: float
    weeks_held_back: tuple[date, ...] = ()


class Pipeline:
    """A lake's only writer. ``gold_suite``: what must hold of a week before it is written."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet, gold_suite: Path = GOLD) -> None:
        self._lake = lake
        self._fleet = fleet
        self._said: Said | None = None
        self._bronze = Bronze(lake, fleet)
        self._horizons = Horizons(spark, lake, fleet)
        self._silver = Silver(spark, lake, fleet, self._horizons)
        self._gold_gate = GoldGate(lake, gold_suite)
        self._gold = Gold(spark, lake, fleet, self._gold_gate)
        self._recovery_weeks = RecoveryWeeks(spark, lake, fleet)

    def open(self) -> None:
        """Make what is missing; learn what the tables hold, what has expired and what is held back."""
        if self._lake.create_tables():
            return
        self._bronze.open()
        self._horizons.open()
        self._gold.open()
        self._gold_gate.open()
        self._recovery_weeks.open()

    def process(self, raw: DataFrame, batch: str, clock: datetime, oldest: datetime | None = None) -> Outcome:
        """Take a batch all the way. ``raw`` has value, source, position and hint.

        Records of minutes before ``oldest`` go to quarantine; those that lay there and
        are good now leave it (``released``).
        """
        started = time.monotonic()
        ingested, accepted = self._bronze.ingest(raw, clock, oldest)
        said = read_said(self._lake, self._fleet)
        # Before silver grows: what this batch makes is made with all that is said now.
        explained = self._explained_anew(said, clock)
        stretches = self._horizons.stretches(ingested.touched)
        silver_changed, silver_facts = self._silver.bring_up(stretches, ingested.touched, said)
        silver_changed += self._silver.find_causes(explained, said)
        gold = self._gold.compute_weeks([*stretches, *explained], said, clock)
        gold_changed = gold.rows_changed + self._recovery_weeks.compute_weeks(clock)
        self._said = said
        verdicts = self._judge(ingested, silver_facts)
        self._record(batch, clock, verdicts, gold)
        released = self._bronze.release(accepted)
        return Outcome(
            ingested,
            silver_changed,
            gold_changed,
            released,
            verdicts + gold.judged.verdicts,
            time.monotonic() - started,
            gold.judged.held_back,
        )

    def _explained_anew(self, said: Said, clock: datetime) -> list[Stretch]:
        """Stored minutes of which something else is said than when they were last computed."""
        before = self._said
        found: list[Stretch | None] = []
        if before is None:
            # What was said while nobody listened: of weeks that are open it counts at once.
            found += [
                self._horizons.known(cluster.id, clock - _OPEN, None) for cluster in self._fleet.clusters
            ]
        else:
            found += [
                self._horizons.known(one.cluster_id, one.starts, one.ends) for one in differing(before, said)
            ]
        if before is None or before.corrections != said.corrections:
            found += self._gold.corrected_weeks(said)
        return united(one for one in found if one is not None)

    def compute_weeks(self, stretches: Sequence[Stretch], batch: str, clock: datetime) -> int:
        """Weeks that the stretches touch, that are due to close or that are held back; and recovery's.

        Returns how many rows of gold changed.
        """
        gold = self._gold.compute_weeks(stretches, read_said(self._lake, self._fleet), clock)
        changed = gold.rows_changed + self._recovery_weeks.compute_weeks(clock)
        if gold.judged.facts:
            self._record(batch, clock, (), gold)
        return changed

    @cached_property
    def _gate(self) -> Gate:
        """Made for the first batch: great-expectations takes seconds to import."""
        return Gate(BATCH)

    def _judge(self, ingested: Ingested, silver: Facts) -> tuple[Verdict, ...]:
        accounted = ingested.stored + ingested.replayed + ingested.quarantined
        facts = {"received": ingested.received, "accounted_for": accounted} | silver
        return tuple(finding.verdict(0, facts) for finding in self._gate.judge([facts]))

    def _record(self, batch: str, clock: datetime, verdicts: Iterable[Verdict], gold: Computed) -> None:
        """In one commit, the batch's last: whoever sees it finds gold written."""
        wanted = [_row(batch, clock, SUITE, batch, verdict) for verdict in verdicts]
        wanted += [
            _row(batch, clock, GOLD_SUITE, f"{batch}/{GOLD_SUITE}", verdict)
            for verdict in gold.judged.verdicts
        ]
        quality = self._lake.small(QUALITY)
        stored = quality.rows((pc.field("batch") == batch) & pc.field("week").is_null())
        news, replaced = self._gold_gate.news(gold.judged, batch, clock)
        quality.replace([*wanted, *news], [*stored, *replaced])


def _row(batch: str, clock: datetime, suite: str, within: str, verdict: Verdict) -> dict[str, Any]:
    check_id = f"{within}/{verdict.expectation}"
    said = (verdict.expectation, verdict.success, verdict.observed)
    return dict(zip(QUALITY.names, (check_id, clock, batch, suite, *said, None), strict=True))
