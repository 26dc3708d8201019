"""Fifty small fleets of every odd kind: Spark's tables are the oracle's, wherever the process stands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle.random_fleets import random_lake
from tests.spark.agreement import compare, take

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]


def test_fifty_random_fleets_have_the_oracles_tables(spark: SparkSession, tmp_path: Path) -> None:
    one = random_lake(seed=0)
    compared = compare(tmp_path, one, take(spark, tmp_path, one))
    assert {path: of.differences[:10] for path, of in compared.items() if of.differences} == {}
    assert all(of.rows for path, of in compared.items() if path != "ops/quarantine")


def test_so_have_a_few_in_a_process_of_a_far_zone() -> None:
    """Fourteen hours ahead of UTC, around a day that its clocks left out."""
    command = [sys.executable, "-m", "tests.chaos", "random_fleets", "--fleets", "4", "--seed", "3"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TZ": "Pacific/Apia"}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert json.loads(done.stdout)["fleets"] == 4
