"""One batch of raw records through bronze, silver and gold.

Every step brings a table to what all of bronze says for the keys that the
batch touches, so a batch may be repeated, or break off anywhere and be
repeated, and the tables come out the same.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.bronze import Bronze, Ingested
from fleetgauge_pipelines.jobs.gold import Gold
from fleetgauge_pipelines.jobs.silver import Silver
from fleetgauge_pipelines.quality.batch_gate import SUITE, BatchGate, Verdict
from fleetgauge_pipelines.quality.silver_facts import Facts
from fleetgauge_pipelines.slo.horizon import Stretch
from fleetgauge_pipelines.tables import QUALITY
from fleetgauge_probes.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did."""

    ingested: Ingested
    silver_rows_changed: int
    gold_rows_changed: int
    released: int
    verdicts: tuple[Verdict, ...]
    seconds: float


class Pipeline:
    """A lake's only writer."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._bronze = Bronze(lake, fleet)
        self._silver = Silver(spark, lake, fleet)
        self._gold = Gold(spark, lake, fleet)

    def open(self) -> None:
        """Make missing tables and learn what silver already holds."""
        self._lake.create_tables()
        self._silver.open()

    def process(self, raw: DataFrame, batch: str, clock: datetime, oldest: datetime | None = None) -> Outcome:
        """Take a batch all the way. ``raw`` has value, source, position and hint.

        Records of minutes before ``oldest`` go to quarantine; those that lay there and
        are good now leave it (``released``).
        """
        started = time.monotonic()
        ingested, accepted = self._bronze.ingest(raw, clock, oldest)
        stretches = self._silver.stretches(ingested.touched)
        silver_changed, silver_facts = self._silver.bring_up(stretches, ingested.touched)
        gold_changed = self.compute_weeks(stretches, clock)
        verdicts = self._judge(ingested, silver_facts, batch, clock)
        released = self._bronze.release(accepted)
        seconds = time.monotonic() - started
        return Outcome(ingested, silver_changed, gold_changed, released, verdicts, seconds)

    def compute_weeks(self, stretches: Sequence[Stretch], clock: datetime) -> int:
        """Weeks that the stretches touch or that are due to close; returns how many rows that changed."""
        return self._gold.compute_weeks(stretches, clock)

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
