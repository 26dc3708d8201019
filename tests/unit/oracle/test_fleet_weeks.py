"""The oracle's fleet-weeks, in worked examples."""

from datetime import date
from typing import Any

from fleetgauge_core.tables import FLEET_WEEKS
from tests.oracle.oracle import ClusterSettings, Row, Settings, evaluate
from tests.unit.oracle.conftest import LONG_AFTER, Bench

METRICS = {"latency_p99_us", "availability_p99", "availability_ratio", "latency_budget_left_minutes"}


def _fleet(records: list[dict[str, Any]], *clusters: ClusterSettings) -> list[Row]:
    return evaluate(records, Settings(clusters), LONG_AFTER).fleet_weeks


def _row(rows: list[Row], metric: str, segment: str = "fleet", value: str = "") -> Row:
    key = (metric, segment, value)
    (row,) = (row for row in rows if (row["metric"], row["segment"], row["segment_value"]) == key)
    return row


def _four_clusters(bench: Bench) -> list[Row]:
    """Return the fleet rows of clusters with a p99 of 10 to 40 us and ratios of 1.00 to 0.97."""
    records = [
        bench.record(cluster_id=f"c{n}", succeeded_us=[10 * n] * (101 - n), failed=n - 1) for n in range(1, 5)
    ]
    return _fleet(records, *(ClusterSettings(f"c{n}") for n in range(1, 5)))


def test_a_row_has_the_columns_of_the_table(bench: Bench) -> None:
    rows = _fleet([bench.record()], ClusterSettings("c"))
    assert all({*row} == {*FLEET_WEEKS.column_names} for row in rows)
    assert {row["metric"] for row in rows} == METRICS
    assert {(row["week"], row["revision"], row["closed"]) for row in rows} == {(date(2026, 3, 2), 1, True)}


def test_latency_is_counted_from_below_and_is_a_float(bench: Bench) -> None:
    row = _row(_four_clusters(bench), "latency_p99_us")
    assert (row["median"], row["p90"], row["p99"], row["clusters"]) == (20.0, 40.0, 40.0, 4)
    assert isinstance(row["median"], float)


def test_availability_and_budget_left_are_counted_from_the_bad_side(bench: Bench) -> None:
    rows = _four_clusters(bench)
    ratio = _row(rows, "availability_ratio")
    assert (ratio["median"], ratio["p90"], ratio["p99"]) == (0.99, 0.97, 0.97)
    left = _row(rows, "latency_budget_left_minutes")
    # The two clusters that failed twice or more have one bad minute of one: 0.01 - 1.
    assert (left["median"], left["p90"], left["p99"]) == (0.01, -0.99, -0.99)


def test_a_cluster_with_less_than_90_percent_coverage_is_excluded(bench: Bench) -> None:
    nine_of_ten = [bench.record(n, cluster_id="enough") for n in (*range(8), 9)]
    eight_of_ten = [bench.record(n, cluster_id="short") for n in (*range(7), 9)]
    rows = _fleet(nine_of_ten + eight_of_ten, ClusterSettings("enough"), ClusterSettings("short"))
    row = _row(rows, "latency_p99_us")
    assert (row["clusters"], row["clusters_excluded"]) == (1, 1)


def test_a_cluster_without_the_metric_is_excluded_from_that_metric_only(bench: Bench) -> None:
    rows = _fleet([bench.record(succeeded_us=[], failed=100)], ClusterSettings("c"))
    latency, ratio = _row(rows, "latency_p99_us"), _row(rows, "availability_ratio")
    assert (latency["clusters"], latency["clusters_excluded"]) == (0, 1)
    assert latency["median"] is latency["p90"] is latency["p99"] is None
    assert (ratio["clusters"], ratio["p99"]) == (1, 0.0)


def test_segments_are_the_fleet_cloud_region_tier_and_every_label(bench: Bench) -> None:
    attributed = ClusterSettings("c", tier="gold", cloud="aws", region="eu", labels={"team": "orders"})
    rows = _fleet([bench.record(), bench.record(cluster_id="plain")], attributed, ClusterSettings("plain"))
    assert {(row["segment"], row["segment_value"]) for row in rows} == {
        ("fleet", ""),
        ("cloud", "aws"),
        ("region", "eu"),
        ("tier", "gold"),
        ("tier", "single-zone"),
        ("team", "orders"),
    }
    assert _row(rows, "latency_p99_us")["clusters"] == 2
    assert _row(rows, "latency_p99_us", "team", "orders")["clusters"] == 1


def test_a_cluster_without_a_row_that_week_is_neither_counted_nor_excluded(bench: Bench) -> None:
    rows = _fleet([bench.record()], ClusterSettings("c"), ClusterSettings("silent", tier="gold"))
    row = _row(rows, "latency_p99_us")
    assert (row["clusters"], row["clusters_excluded"]) == (1, 0)
    assert ("tier", "gold") not in {(row["segment"], row["segment_value"]) for row in rows}
