"""Spark's tables of fifty small random fleets are equal to the oracle's, in any time zone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.tables import QUARANTINE
from fleetgauge_pipelines.jobs import silver
from tests.chaos.random_fleets import hold

ROOT = Path(__file__).parents[2]
FLEETS = 50
SEED = 3
FAR_ZONE = "Pacific/Apia"


@pytest.fixture
def far_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set Python's time zone; the driver's JVM is in UTC in any case."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", FAR_ZONE)
        time.tzset()
        yield
    time.tzset()


def test_fifty_random_fleets_match_the_oracle_in_a_distant_time_zone(
    spark: SparkSession, far_zone: None, tmp_path: Path
) -> None:
    """Fourteen hours ahead of UTC, around a day that its clocks left out."""
    assert datetime(2011, 12, 31).astimezone().utcoffset() == timedelta(hours=14)
    compared = hold(spark, tmp_path, SEED, FLEETS)
    assert {
        path: comparison.differences for path, comparison in compared.items() if comparison.differences
    } == {}
    assert {path for path, comparison in compared.items() if not comparison.rows} == {QUARANTINE.path}


def test_units_of_a_few_records_match_the_oracle(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes that are stored already, clusters that nobody measured where one of many units begins."""
    monkeypatch.setattr(silver, "MOST_RECORDS", 40)
    compared = hold(spark, tmp_path, SEED + 1, 15)
    assert {
        path: comparison.differences for path, comparison in compared.items() if comparison.differences
    } == {}


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_random_fleets_match_the_oracle_in_a_process_started_in_that_zone() -> None:
    """With Spark as users have it."""
    command = [sys.executable, "-m", "tests.chaos", "random_fleets", "--fleets", str(FLEETS)]
    done = subprocess.run(
        [*command, "--seed", str(SEED)],
        cwd=ROOT,
        env=os.environ | {"TZ": FAR_ZONE},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    rows = json.loads(done.stdout)["rows"]
    assert all(count for path, count in rows.items() if path != QUARANTINE.path), rows
