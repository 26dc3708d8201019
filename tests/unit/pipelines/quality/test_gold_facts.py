"""The aggregates of a week on which the gold suite is validated."""

from typing import Any

import pytest

from fleetgauge_pipelines.quality.gold_facts import SilverCounts, compute_gold_facts

SILVER = {"orders": SilverCounts(100, 297, 300), "carts": SilverCounts(50, 50, 50)}


def _cluster(cluster_id: str, **changed: Any) -> dict[str, Any]:
    silver = SILVER[cluster_id]
    return {
        "cluster_id": cluster_id,
        "latency_p99_us": 20_000,
        "latency_p99_censored_us": 30_000,
        "availability_p99": 0.98,
        "availability_ratio": 0.999,
        "bad_minutes": 2,
        "minutes_measured": silver.minutes - 1,
        "minutes_expected": silver.minutes,
        "minutes_expected_raw": silver.minutes,
        "coverage": silver.coverage,
    } | changed


def _fleet(metric: str, median: float | None, p90: float | None, p99: float | None) -> dict[str, Any]:
    quantiles = {"metric": metric, "median": median, "p90": p90, "p99": p99}
    return quantiles | {"segment": "fleet", "segment_value": "", "clusters": 1, "clusters_excluded": 1}


CLUSTERS = [_cluster("orders"), _cluster("carts", latency_p99_us=None, availability_p99=0.5)]
FLEET = [
    _fleet("latency_p99_us", 10_000, 20_000, 20_000),
    _fleet("availability_ratio", 0.999, 0.99, 0.9),
    _fleet("latency_budget_left_minutes", 90.0, 5.0, -3.0),
]


def test_a_consistent_week_has_no_faults() -> None:
    assert compute_gold_facts(CLUSTERS, FLEET, SILVER) == {
        "week_availability_min": 0.5,
        "week_availability_max": 0.999,
        "week_latency_min_us": 10_000,
        "coverage_min": 0.99,
        "coverage_max": 1.0,
        "more_bad_than_expected": 0,
        "more_measured_than_expected": 0,
        "coverage_unlike_silver": 0,
        "fleet_quantiles_out_of_order": 0,
        "cluster_weeks": 2,
        "fleet_clusters_least": 2,
        "fleet_clusters_most": 2,
        "week_minutes_expected": 150,
        "silver_cluster_minutes": 150,
    }


@pytest.mark.parametrize(
    ("change", "fact", "expected"),
    [
        ({"bad_minutes": 101}, "more_bad_than_expected", 1),
        ({"minutes_measured": 101}, "more_measured_than_expected", 1),
        ({"coverage": 0.98}, "coverage_unlike_silver", 1),
        ({"coverage": None}, "coverage_unlike_silver", 1),
        ({"minutes_expected_raw": 99}, "week_minutes_expected", 149),
        ({"latency_p99_censored_us": -5}, "week_latency_min_us", -5),
    ],
)
def test_an_inconsistent_cluster_week_changes_its_fact(
    change: dict[str, Any], fact: str, expected: float
) -> None:
    facts = compute_gold_facts([_cluster("orders", **change), CLUSTERS[1]], FLEET, SILVER)
    assert facts[fact] == expected


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (_fleet("latency_p99_us", 30_000, 20_000, 40_000), 1),
        (_fleet("availability_p99", 0.9, 0.99, 0.999), 1),
        (_fleet("latency_budget_left_minutes", 1.0, 2.0, 0.0), 1),
        (_fleet("availability_p99", 0.9, 0.9, 0.9), 0),
        (_fleet("availability_p99", None, None, None), 0),
    ],
)
def test_quantiles_must_be_ordered_from_the_bad_side(row: dict[str, Any], wrong: int) -> None:
    assert compute_gold_facts(CLUSTERS, [row], SILVER)["fleet_quantiles_out_of_order"] == wrong


def test_a_cluster_missing_from_gold_shows_and_one_not_computed_is_excluded() -> None:
    missing = compute_gold_facts(CLUSTERS[:1], FLEET, SILVER)
    assert (missing["cluster_weeks"], missing["week_minutes_expected"]) == (1, 100)
    assert (missing["fleet_clusters_most"], missing["silver_cluster_minutes"]) == (2, 150)
    partial = compute_gold_facts(CLUSTERS, FLEET, {"orders": SILVER["orders"]})
    assert (
        partial["cluster_weeks"],
        partial["week_minutes_expected"],
        partial["silver_cluster_minutes"],
    ) == (
        2,
        100,
        100,
    )


def test_a_week_without_rows_has_no_faults() -> None:
    facts = compute_gold_facts([], [], {})
    assert set(facts.values()) == {None, 0}
