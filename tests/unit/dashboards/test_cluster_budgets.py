"""Clusters are sorted worst first, and burn rates of silent clusters are frozen."""

from datetime import timedelta
from typing import Any

import pytest

from fleetgauge_core import tables
from fleetgauge_core.fleet import BURN_WINDOWS
from fleetgauge_dashboards.reader.lake import BURN_COLUMNS
from fleetgauge_dashboards.views.cluster_budgets import (
    BurnStatus,
    compute_burns,
    select_latest_revisions,
    smallest_budget_share_left,
    sort_clusters_worst_first,
)
from tests.unit.dashboards.frames import WEEK, frame, minute


def _week(cluster_id: str, latency_left: float | None, availability_spent: float = 0) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "week": WEEK,
        "revision": 0,
        "latency_p99_censored_us": 50_000,
        "latency_objective_us": 100_000,
        "latency_budget_left_minutes": latency_left,
        "latency_budget_minutes": 100.8,
        "availability_objective": 0.9995,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": availability_spent,
    }


def test_the_smaller_budget_share_decides_which_cluster_is_worst() -> None:
    rows = [_week("a", 60), _week("b", 90, availability_spent=6), _week("c", -3), _week("d", None)]
    assert [row["cluster_id"] for row in sort_clusters_worst_first(rows)] == ["b", "c", "a", "d"]
    assert smallest_budget_share_left(rows[1]) == pytest.approx(-0.96 / 5.04)


def test_the_highest_revision_of_a_week_is_selected() -> None:
    rows = [_week("a", 1) | {"revision": revision} for revision in (2, 1)]
    assert [row["revision"] for row in select_latest_revisions(rows, WEEK, ["cluster_id"])] == [2]


def _minutes(cluster_id: str, first: int, last: int, bad: int = 0, failed: int = 0) -> list[dict[str, Any]]:
    """Minutes first..last, the newest ``bad`` of them over the objective, each with ``failed`` of 200."""
    return [
        {
            "cluster_id": cluster_id,
            "minute": minute(n),
            "brokers_expected": 2,
            "brokers_measured": 2,
            "latency_p99_censored_us": 100_001 if n > last - bad else 100_000,
            "attempted": 200,
            "succeeded": 200 - failed,
        }
        for n in range(first, last + 1)
    ]


def _burns(rows: list[dict[str, Any]], now: int, *clusters: str) -> dict[str, BurnStatus]:
    table = frame(tables.CLUSTER_MINUTES, BURN_COLUMNS, rows)
    at = minute(now) + timedelta(seconds=30)
    return compute_burns(table, [_week(cluster, 60) for cluster in clusters], at, BURN_WINDOWS[7])


def test_burn_is_computed_at_the_end_of_the_clusters_data() -> None:
    burn = _burns(_minutes("a", 0, 359, bad=9, failed=1), 361, "a")["a"]
    assert (burn.latency_burn_1h, burn.latency_burn_6h) == (15, 2.5)
    assert burn.availability_burn_1h == pytest.approx(10)
    assert burn.alerts_firing[0] == "latency page 1h/5m"
    assert burn.alerts_frozen == ()


def test_alerts_of_a_silent_cluster_are_frozen() -> None:
    rows = _minutes("a", 0, 359, bad=60) + _minutes("b", 0, 350)
    burns = _burns(rows, 361, "a", "b")
    assert burns["a"].alerts_frozen == ()
    assert "latency page 1h/5m" in burns["b"].alerts_frozen
    assert "latency page 6h/30m" in burns["b"].alerts_frozen
    assert "latency ticket 1d/2h" not in burns["b"].alerts_frozen
    assert burns["b"].alerts_firing == ()


def test_a_lake_that_ended_long_ago_has_no_current_burn_rate() -> None:
    burn = _burns(_minutes("a", 0, 60, bad=60), 10**6, "a")["a"]
    assert (burn.latency_burn_1h, burn.alerts_firing, len(burn.alerts_frozen)) == (None, (), 8)


def test_a_cluster_without_recent_minutes_has_no_burn_rate_and_frozen_alerts() -> None:
    burn = _burns(_minutes("a", 0, 10), 12, "a", "gone")["gone"]
    assert (burn.latency_burn_1h, burn.availability_burn_6h) == (None, None)
    assert len(burn.alerts_frozen) == 8
