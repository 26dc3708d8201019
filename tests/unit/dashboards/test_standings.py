"""Clusters of a week, worst first, and their burn where they fall silent."""

from datetime import timedelta
from typing import Any

import pytest

from fleetgauge_core import tables
from fleetgauge_core.fleet import BURN_WINDOWS
from fleetgauge_dashboards.reader.lake import BURN
from fleetgauge_dashboards.views.standings import Burn, burns, share_left, week_rows, worst_first
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


def test_the_budget_that_is_nearer_to_its_end_decides_who_is_worst() -> None:
    rows = [_week("a", 60), _week("b", 90, availability_spent=6), _week("c", -3), _week("d", None)]
    assert [row["cluster_id"] for row in worst_first(rows)] == ["b", "c", "a", "d"]
    assert share_left(rows[1]) == pytest.approx(-0.96 / 5.04)


def test_a_week_is_taken_at_its_highest_revision() -> None:
    rows = [_week("a", 1) | {"revision": revision} for revision in (2, 1)]
    assert [row["revision"] for row in week_rows(rows, WEEK, ["cluster_id"])] == [2]


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


def _burns(rows: list[dict[str, Any]], now: int, *clusters: str) -> dict[str, Burn]:
    table = frame(tables.CLUSTER_MINUTES, BURN, rows)
    at = minute(now) + timedelta(seconds=30)
    return burns(table, [_week(cluster, 60) for cluster in clusters], at, BURN_WINDOWS[7])


def test_burn_is_taken_at_the_end_of_the_clusters_data() -> None:
    found = _burns(_minutes("a", 0, 359, bad=9, failed=1), 361, "a")["a"]
    assert (found.latency_burn_1h, found.latency_burn_6h) == (15, 2.5)
    assert found.availability_burn_1h == pytest.approx(10)
    assert found.alerts_firing[0] == "latency page 1h/5m"
    assert found.alerts_frozen == ()


def test_a_cluster_that_fell_silent_is_frozen_not_well() -> None:
    rows = _minutes("a", 0, 359, bad=60) + _minutes("b", 0, 350)
    found = _burns(rows, 361, "a", "b")
    assert found["a"].alerts_frozen == ()
    assert "latency page 1h/5m" in found["b"].alerts_frozen
    assert "latency page 6h/30m" in found["b"].alerts_frozen
    assert "latency ticket 1d/2h" not in found["b"].alerts_frozen
    assert found["b"].alerts_firing == ()


def test_a_lake_that_ended_long_ago_knows_no_burn_of_now() -> None:
    found = _burns(_minutes("a", 0, 60, bad=60), 10**6, "a")["a"]
    assert (found.latency_burn_1h, found.alerts_firing, len(found.alerts_frozen)) == (None, (), 8)


def test_a_cluster_without_recent_minutes_has_no_burn_and_is_frozen() -> None:
    found = _burns(_minutes("a", 0, 10), 12, "a", "gone")["gone"]
    assert (found.latency_burn_1h, found.availability_burn_6h) == (None, None)
    assert len(found.alerts_frozen) == 8
