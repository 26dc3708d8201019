"""The weeks of ten thousand clusters, from their minutes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from fleetgauge_core.slo.minute_range import MinuteRange
from fleetgauge_core.tables import CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS
from tests.spark.lakes import delta, opened, rows

pytestmark = pytest.mark.thorough

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
MINUTES = 50
CLUSTERS = 10_000
MINUTE = timedelta(minutes=1)


def cluster_id(number: int) -> str:
    return f"cluster-{number:05}"


def minutes_of(numbers: Sequence[int]) -> dict[str, Iterable[Any]]:
    """Cluster n has a p99 of n x 1,000 us and the minute's number; of a million probes n fail."""
    pairs = [(number, minute) for number in numbers for minute in range(MINUTES)]
    latency_us = [number * 1000 + minute for number, minute in pairs]
    availability = [1 - number / 1_000_000 for number, _ in pairs]
    return {
        "cluster_id": [cluster_id(number) for number, _ in pairs],
        "minute": [MONDAY + minute * MINUTE for _, minute in pairs],
        "latency_p99_us": latency_us,
        "latency_worst_home": [1] * len(pairs),
        "latency_p99_censored_us": latency_us,
        "latency_pooled_p99_us": latency_us,
        "availability": availability,
        "availability_worst_home": [1] * len(pairs),
        "availability_pooled": availability,
        "brokers_expected": [1] * len(pairs),
        "brokers_measured": [1] * len(pairs),
        "attempted": [1_000_000] * len(pairs),
        "succeeded": [1_000_000 - number for number, _ in pairs],
        "day": [MONDAY.date()] * len(pairs),
    }


@pytest.fixture(scope="module")
def gold(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    numbers = range(1, CLUSTERS + 1)
    fleet = {"clusters": [{"id": cluster_id(number), "bootstrap": "nowhere:9092"} for number in numbers]}
    _, pipeline = opened(spark, folder, fleet)
    table = delta(folder, CLUSTER_MINUTES)
    schema = pa.schema(table.schema().to_arrow())
    columns = minutes_of(numbers)
    size = CLUSTERS * MINUTES
    arrays = [pa.array(columns.get(field.name, [None] * size), field.type) for field in schema]
    write_deltalake(table, pa.Table.from_arrays(arrays, schema=schema), mode="append")
    last = MONDAY + (MINUTES - 1) * MINUTE
    pipeline.compute_weeks(
        [MinuteRange(cluster_id(number), MONDAY, last) for number in numbers], "weeks", last
    )
    return folder


def test_every_cluster_has_its_week(gold: Path) -> None:
    """Of 50 minutes the 50th is the p99; the bad ones are those over 100,000 us."""
    weeks = {row["cluster_id"]: row for row in rows(gold, CLUSTER_WEEKS)}
    assert len(weeks) == CLUSTERS
    for number in range(1, CLUSTERS + 1):
        row = weeks[cluster_id(number)]
        bad = 50 if number > 100 else 49 if number == 100 else 0
        assert row["latency_p99_us"] == number * 1000 + 49
        assert (row["minutes_expected"], row["bad_minutes"], row["coverage"]) == (50, bad, 1.0)
        assert row["latency_budget_left_minutes"] == 0.5 - bad
        assert row["availability_ratio"] == pytest.approx(1 - number / 1_000_000, rel=1e-12)
        assert row["availability_spent_minutes"] == pytest.approx(50 * number / 1_000_000, rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "median", "p90", "p99"),
    [
        ("latency_p99_us", 5_000_049, 9_000_049, 9_900_049),
        ("availability_ratio", 0.995, 0.991, 0.9901),
        ("availability_p99", 0.995, 0.991, 0.9901),
        ("latency_budget_left_minutes", -49.5, -49.5, -49.5),
    ],
)
def test_the_fleets_quantiles_are_nearest_ranks_over_ten_thousand_clusters(
    gold: Path, metric: str, median: float, p90: float, p99: float
) -> None:
    (row,) = (
        row
        for row in rows(gold, FLEET_WEEKS)
        if (row["metric"], row["segment"], row["week"]) == (metric, "fleet", date(2026, 3, 2))
    )
    assert (row["clusters"], row["clusters_excluded"]) == (CLUSTERS, 0)
    assert [row[name] for name in ("median", "p90", "p99")] == pytest.approx([median, p90, p99], rel=1e-9)
