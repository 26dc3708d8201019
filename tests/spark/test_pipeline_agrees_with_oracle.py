"""Spark's tables of a random week with many faults are equal to the oracle's."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from tests.oracle.week import START, random_fleet, random_week
from tests.spark.agreement import assert_tables_equal, write_files
from tests.spark.lakes import backfilled

#: The very instant at which a UTC week that ends three hours after START closes.
CLOCK = START + timedelta(hours=51)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_a_random_week_from_files_equals_the_oracle(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    records = random_week(seed)
    fleet = Fleet.model_validate(random_fleet(seed))
    folder = write_files(tmp_path / "records", records, files=3)
    lake = Lake(spark, str(tmp_path / "lake"))

    [outcome] = backfilled(spark, lake, fleet, open_record_folder(folder), CLOCK).batches

    assert outcome.ingested.quarantined == 0
    assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts
    assert_tables_equal(tmp_path / "lake", records, fleet, CLOCK)
    assert PROBE_MINUTE.fingerprint
