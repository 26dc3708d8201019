"""One batch of raw records through bronze, silver and gold.

Every step brings a table to what all of bronze says for the keys that the
batch touches, so a batch may be repeated, or break off anywhere and be
repeated, and the tables come out the same.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.bronze import Bronze, Ingested
from fleetgauge_pipelines.jobs.gold import Gold
from fleetgauge_pipelines.jobs.said import Said, differing, read_said
from fleetgauge_pipelines.jobs.silver import Silver
from fleetgauge_pipelines.quality.batch_gate import SUITE, BatchGate, Verdict
from fleetgauge_pipelines.quality.silver_facts import Facts
from fleetgauge_pipelines.slo.horizon import Stretch, united
from fleetgauge_pipelines.slo.weeks import CLOSES_AFTER
from fleetgauge_pipelines.tables import QUALITY
from fleetgauge_probes.fleet import Fleet

#: A week, and the time until it closes.
_OPEN = timedelta(days=7) + CLOSES_AFTER


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did."""

    ingested: Ingested
    silver_rows_changed: int
    gold_rows_changed: int
    verdicts: tuple[Verdict, ...]
    seconds: float


class Pipeline:
    """A lake's only writer."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._fleet = fleet
        self._said: Said | None = None
        self._bronze = Bronze(lake, fleet)
        self._silver = Silver(spark, lake, fleet)
        self._gold = Gold(spark, lake, fleet)

    def open(self) -> None:
        """Make missing tables and learn what silver already holds."""
        self._lake.create_tables()
        self._silver.open()

    def process(self, raw: DataFrame, batch: str, clock: datetime, oldest: datetime | None = None) -> Outcome:
        """Take a batch all the way. ``raw`` has value, source, position and hint.

        Records of minutes before ``oldest`` go to quarantine.
        """
        started = time.monotonic()
        ingested = self._bronze.ingest(raw, clock, oldest)
        said = read_said(self._lake, self._fleet)
        stretches = self._silver.stretches(ingested.touched)
        silver_changed, silver_facts = self._silver.bring_up(stretches, ingested.touched, said)
        explained = self._explained_anew(said, clock)
        silver_changed += self._silver.find_causes(explained, said)
        gold_changed = self._gold.compute_weeks([*stretches, *explained], said, clock)
        self._said = said
        verdicts = self._judge(ingested, silver_facts, batch, clock)
        return Outcome(ingested, silver_changed, gold_changed, verdicts, time.monotonic() - started)

    def _explained_anew(self, said: Said, clock: datetime) -> list[Stretch]:
        """Stored minutes of which something else is said than when they were last computed."""
        before = self._said
        found: list[Stretch | None] = []
        if before is None:
            # What was said while nobody listened: of weeks that are open it counts at once.
            found += [self._silver.known(cluster.id, clock - _OPEN, None) for cluster in self._fleet.clusters]
        else:
            found += [
                self._silver.known(one.cluster_id, one.starts, one.ends) for one in differing(before, said)
            ]
        if before is None or before.corrections != said.corrections:
            found += self._gold.corrected_weeks(said)
        return united(one for one in found if one is not None)

    def compute_weeks(self, stretches: Sequence[Stretch], clock: datetime) -> int:
        """Weeks that the stretches touch or that are due to close; returns how many rows that changed."""
        return self._gold.compute_weeks(stretches, read_said(self._lake, self._fleet), clock)

    @cached_property
    def _gate(self) -> BatchGate:
        """Made for the first batch: great-expectations takes seconds to import, and weeks alone need none."""
        return BatchGate()

    def _judge(self, ingested: Ingested, silver: Facts, batch: str, clock: datetime) -> tuple[Verdict, ...]:
        accounted = ingested.stored + ingested.replayed + ingested.quarantined
        verdicts = self._gate.judge({"received": ingested.received, "accounted_for": accounted} | silver)
        rows = [
            (f"{batch}/{v.expectation}", clock, batch, SUITE, v.expectation, v.success, v.observed)
            for v in verdicts
        ]
        wanted = [dict(zip(QUALITY.names, row, strict=True)) for row in rows]
        self._lake.bring_rows_to(QUALITY, wanted, self._lake.rows(QUALITY, F.col("batch") == batch))
        return verdicts
