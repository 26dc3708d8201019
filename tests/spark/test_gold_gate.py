"""A week that fails an expectation is held back until it passes; other weeks are written."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import (
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    QUALITY,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from tests.spark.broken import Record, good_record
from tests.spark.lakes import raw_frame, rows

FLEET = Fleet.model_validate(
    {
        "clusters": [
            {"id": "orders", "bootstrap": "orders:9092"},
            {"id": "carts", "bootstrap": "carts:9092"},
        ]
    }
)
FIRST, SECOND = date(2026, 3, 30), date(2026, 4, 6)
EARLY = datetime(2026, 4, 3, 12, tzinfo=UTC)
LATE = datetime(2026, 4, 7, 12, tzinfo=UTC)
CLOCK = LATE + timedelta(hours=1)
#: A lower bound on latency that no week reaches.
TOO_STRICT = {
    "name": "gold",
    "expectations": [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "week_latency_min_us", "min_value": 60_000_000},
        }
    ],
}


class GatedLake:
    """A lake, and pipelines that are started on it one after the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._batches = 0
        self.folder = folder
        self.lake = Lake(spark, str(folder))

    def started(self, **suite: Path) -> Pipeline:
        pipeline = Pipeline(self._spark, self.lake, FLEET, **suite)
        pipeline.open()
        return pipeline

    def process(self, pipeline: Pipeline, *records: Record) -> BatchResult:
        self._batches += 1
        values = [PROBE_MINUTE.encode(record) for record in records]
        raw = raw_frame(self._spark, values, self._batches * 100)
        return pipeline.process(raw, f"part/{self._batches}", CLOCK)

    def weeks(self) -> dict[tuple[str, date], int]:
        return {
            (row["cluster_id"], row["week"]): row["minutes_expected"]
            for row in rows(self.folder, CLUSTER_WEEKS)
        }

    def fleet_weeks(self) -> dict[date, int]:
        return {
            row["week"]: row["clusters"] + row["clusters_excluded"]
            for row in rows(self.folder, FLEET_WEEKS)
            if (row["segment"], row["metric"]) == ("fleet", "availability_ratio")
        }

    def verdicts_of_weeks(self) -> dict[tuple[date, str], dict[str, Any]]:
        week_rows = [row for row in rows(self.folder, QUALITY) if row["week"]]
        by_week = {(row["week"], row["expectation"]): row for row in week_rows}
        assert len(by_week) == len(week_rows)
        return by_week


def begin(sequence: int, cluster: str) -> tuple[Record, Record]:
    """Return the records of a cluster's first minute; a single late one would not begin its measurement."""
    leader = good_record(1000 + sequence, EARLY, cluster, leg="leader")
    return good_record(sequence, EARLY, cluster), leader


@pytest.fixture
def gated(spark: SparkSession, tmp_path: Path) -> GatedLake:
    return GatedLake(spark, tmp_path / "lake")


def test_a_week_of_corrupt_silver_is_held_back_and_other_weeks_are_written(
    spark: SparkSession, gated: GatedLake
) -> None:
    broken = "expect_column_values_to_be_between(week_availability_max)"
    pipeline = gated.started()
    gated.process(pipeline, good_record(1, LATE), *begin(2, "carts"))
    before, fleet_before = gated.weeks(), gated.fleet_weeks()
    silver = DeltaTable.forPath(spark, gated.lake.path(CLUSTER_MINUTES))
    silver.update("cluster_id = 'orders'", {"succeeded": F.lit(200)})

    later = LATE + timedelta(minutes=5)
    early = EARLY + timedelta(minutes=1)
    outcome = gated.process(pipeline, good_record(3, later), good_record(4, early, "carts"))

    assert outcome.weeks_held_back == (SECOND,)
    assert [verdict.expectation for verdict in outcome.verdicts if not verdict.success] == [broken]
    assert gated.weeks() == before | {("carts", FIRST): 2}
    assert gated.fleet_weeks() == fleet_before
    (held,) = gated.verdicts_of_weeks().values()
    assert (held["week"], held["expectation"], held["success"]) == (SECOND, broken, False)
    assert json.loads(held["observed"]) == {"week_availability_max": 1.5}

    # After a restart silver is correct again; the week is computed only because it was held back.
    silver.update("cluster_id = 'orders'", {"succeeded": F.col("attempted")})
    pipeline = gated.started()
    pipeline.compute_weeks((), "start", CLOCK)

    assert gated.weeks() == before | {("carts", FIRST): 2, ("orders", SECOND): 6}
    (passed,) = gated.verdicts_of_weeks().values()
    assert (passed["check_id"], passed["success"], passed["batch"]) == (held["check_id"], True, "start")


def test_a_held_back_week_is_judged_with_every_batch_until_it_passes(
    gated: GatedLake, tmp_path: Path
) -> None:
    strict = tmp_path / "strict.json"
    strict.write_text(json.dumps(TOO_STRICT))
    pipeline = gated.started(gold_suite=strict)
    gated.process(pipeline, *begin(1, "orders"), good_record(2, LATE))
    since = [row["at"] for row in gated.verdicts_of_weeks().values()]

    # It touches neither week of orders.
    outcome = gated.process(pipeline, *begin(3, "carts"))

    assert (gated.weeks(), gated.fleet_weeks()) == ({}, {})
    assert outcome.weeks_held_back == (FIRST, SECOND)
    assert [row["at"] for row in gated.verdicts_of_weeks().values()] == since

    outcome = gated.process(gated.started())

    assert outcome.weeks_held_back == ()
    assert set(gated.weeks()) == {("orders", FIRST), ("orders", SECOND), ("carts", FIRST)}
    assert gated.fleet_weeks() == {FIRST: 2, SECOND: 1}
    assert all(row["success"] for row in gated.verdicts_of_weeks().values())


def test_a_cluster_removed_from_the_fleet_file_holds_no_week_back(
    spark: SparkSession, gated: GatedLake
) -> None:
    gated.process(gated.started(), *begin(1, "orders"), *begin(2, "carts"))
    left = FLEET.model_copy(update={"clusters": FLEET.clusters[:1]})
    pipeline = Pipeline(spark, gated.lake, left)
    pipeline.open()
    outcome = gated.process(pipeline, good_record(3, EARLY + timedelta(minutes=1)))
    assert outcome.weeks_held_back == ()
    assert gated.weeks() == {("orders", FIRST): 2, ("carts", FIRST): 1}
    assert gated.fleet_weeks() == {FIRST: 1}
