"""The tables do not depend on how records are split into batches, or how often they are delivered."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import CLUSTER_WEEKS
from fleetgauge_pipelines.jobs import silver
from fleetgauge_pipelines.jobs.batch import Pipeline
from tests.oracle.week import START, ProbeRecord, random_fleet, random_week
from tests.spark.agreement import assert_tables_equal
from tests.spark.broken import good_record
from tests.spark.lakes import opened, raw_frame, rows

MINUTES = 60
BATCHES = 3
#: Inside the week of every record, in every zone that a random fleet has.
CLOCK = START + timedelta(minutes=MINUTES + 5)


def batches_of(records: Sequence[ProbeRecord], rng: Random) -> list[list[ProbeRecord]]:
    """Split records in random order; every batch but the first repeats some earlier records."""
    shuffled = rng.sample(records, len(records))
    size = -(-len(shuffled) // BATCHES)
    parts = [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
    return [
        part + rng.sample(shuffled[: number * size], min(number * size, size // 4))
        for number, part in enumerate(parts)
    ]


def process(
    spark: SparkSession, pipeline: Pipeline, records: Sequence[ProbeRecord], number: int, clock: Any = CLOCK
) -> None:
    values = [PROBE_MINUTE.encode(record) for record in records]
    outcome = pipeline.process(raw_frame(spark, values, number * 100_000), f"part/{number}", clock)
    assert outcome.ingested.quarantined == 0
    assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts


@pytest.mark.parametrize("seed", [11])
def test_batches_in_any_order_with_replays_give_the_oracles_tables(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """The oracle computes its tables from all records at once."""
    records = random_week(seed, minutes=MINUTES)
    fleet = Fleet.model_validate(random_fleet(seed, minutes=MINUTES))
    lake, pipeline = opened(spark, tmp_path / "lake", fleet)

    for number, part in enumerate(batches_of(records, Random(seed))):
        if number == BATCHES - 1:
            pipeline = Pipeline(spark, lake, fleet)
            pipeline.open()
        process(spark, pipeline, part, number)

    assert_tables_equal(tmp_path / "lake", records, fleet, CLOCK)
    assert {row["revision"] for row in rows(tmp_path / "lake", CLUSTER_WEEKS)} == {0}


@pytest.mark.parametrize(
    "piece", [timedelta(minutes=5), pytest.param(timedelta(days=7), marks=pytest.mark.thorough)]
)
def test_records_before_since_name_the_first_expected_brokers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: timedelta
) -> None:
    """Four brokers are expected from the last record before ``since``, three from the first one after it."""
    monkeypatch.setattr(silver, "_MAX_PIECE", piece)
    since = START + timedelta(minutes=10)
    fleet = Fleet.model_validate(
        {"clusters": [{"id": "orders", "bootstrap": "orders:9092", "since": since.isoformat()}]}
    )
    before = good_record(1, START + timedelta(minutes=5)) | {"expected_brokers": (1, 2, 3, 4)}
    after, between = (good_record(n, since + timedelta(minutes=n)) for n in (9, 4))
    lake, pipeline = opened(spark, tmp_path / "lake", fleet)

    process(spark, pipeline, [before], 0)
    process(spark, pipeline, [after], 1)
    assert_tables_equal(tmp_path / "lake", [before, after], fleet, CLOCK)

    restarted = Pipeline(spark, lake, fleet)
    restarted.open()
    process(spark, restarted, [between], 2)
    assert_tables_equal(tmp_path / "lake", [before, after, between], fleet, CLOCK)


@pytest.mark.parametrize(
    ("piece", "gap"),
    [
        (timedelta(hours=8), timedelta(hours=20)),
        pytest.param(timedelta(days=3), timedelta(days=8), marks=pytest.mark.thorough),
    ],
)
def test_a_long_gap_between_two_records_is_computed_in_pieces(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: timedelta, gap: timedelta
) -> None:
    monkeypatch.setattr(silver, "_MAX_PIECE", piece)
    fleet = Fleet.model_validate(
        {
            "clusters": [
                {"id": "orders", "bootstrap": "orders:9092"},
                {"id": "carts", "bootstrap": "carts:9092"},
            ]
        }
    )
    late, clock = START + gap, START + gap + timedelta(minutes=5)
    records = [good_record(1, START), good_record(2, late), good_record(3, late, "carts")]
    # A single late record would not begin a cluster's measurement.
    records.append(good_record(4, START, leg="leader"))
    _, pipeline = opened(spark, tmp_path / "lake", fleet)

    process(spark, pipeline, records, 0, clock)

    assert_tables_equal(tmp_path / "lake", records, fleet, clock)
