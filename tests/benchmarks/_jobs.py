"""The pipeline's jobs on the lake of a simulated fleet, each measured for itself."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.session import open_session
from fleetgauge_pipelines.jobs.annotations import read_annotations
from fleetgauge_pipelines.jobs.bronze import BronzeWriter
from fleetgauge_pipelines.jobs.gold import GoldWriter
from fleetgauge_pipelines.jobs.gold_gate import GoldGate
from fleetgauge_pipelines.jobs.silver import SilverWriter
from fleetgauge_pipelines.jobs.silver_bounds import SilverBounds
from fleetgauge_pipelines.quality.gate import GOLD_SUITE_FILE
from fleetgauge_pipelines.simulation import SimulatedFleet
from tests.benchmarks._measure import Duration, measure_duration

MEMORY = "3g"
_MINUTE = timedelta(minutes=1)

Touched = dict[str, tuple[datetime, datetime]]


@contextmanager
def run_session() -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {MEMORY} pyspark-shell")
    spark = open_session("bench", lambda _: None)
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class Jobs:
    """A lake for a simulated fleet, and the jobs that write it."""

    lake: Lake
    fleet: Fleet
    bronze: BronzeWriter
    bounds: SilverBounds
    silver: SilverWriter
    gold: GoldWriter
    simulated: SimulatedFleet

    @classmethod
    def create(cls, spark: SparkSession, folder: Path, simulated: SimulatedFleet) -> "Jobs":
        lake, fleet = Lake(spark, str(folder)), Fleet.model_validate(simulated.fleet_document())
        lake.create_tables()
        gold = GoldWriter(spark, lake, fleet, GoldGate(lake, GOLD_SUITE_FILE))
        bounds = SilverBounds(lake, fleet)
        silver = SilverWriter(spark, lake, fleet, bounds)
        return cls(lake, fleet, BronzeWriter(spark, lake, fleet), bounds, silver, gold, simulated)

    def touch_all(self) -> Touched:
        """Return the first and the last minute of every cluster."""
        return {
            profile.cluster_id: (self.simulated.start, self.simulated.end - _MINUTE)
            for profile in self.simulated.profiles
        }

    def ingest(self, raw: DataFrame) -> tuple[Duration, Duration, Duration]:
        """Compute bronze, silver and gold; return the duration of each."""
        touched: Touched = {}
        to_bronze = measure_duration(
            lambda: touched.update(self.bronze.ingest(raw, self.simulated.end)[0].touched)
        )
        return to_bronze, *self.compute(touched)

    def compute(self, touched: Touched) -> tuple[Duration, Duration]:
        """Compute silver and gold; return the duration of each."""
        ranges = self.bounds.find_ranges_to_compute(touched, self.simulated.end)
        annotations = read_annotations(self.lake, self.fleet)
        return (
            measure_duration(lambda: self.silver.update(ranges, touched, annotations)),
            measure_duration(lambda: self.gold.compute_weeks(ranges, annotations, self.simulated.end)),
        )
