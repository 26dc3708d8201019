"""Values on each page equal those in the tables, for three random weeks."""

from datetime import date, timedelta
from random import Random
from typing import Any

import pytest

from fleetgauge_core import tables
from fleetgauge_dashboards.links import (
    AlertsView,
    ClusterView,
    FleetView,
    QualityView,
    ReviewView,
    Span,
    WhyView,
)
from fleetgauge_dashboards.pages import alerts, cluster, fleet, quality, review, why
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.units import format_milliseconds, format_minutes, format_percent
from tests.browser.lake import ORDERS, PAYMENTS, SEARCH
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake, visible_text

SHOWN = {
    "latency_p99_us": format_milliseconds,
    "availability_ratio": format_percent,
    "latency_budget_left_minutes": format_minutes,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeFixture:
    return open_lake(tmp_path_factory.mktemp("numbers"))


@pytest.fixture(params=Random(8).sample(range(6), 3), ids=lambda back: f"{back} weeks back")
def week(lake: LakeFixture, request: pytest.FixtureRequest) -> date:
    return lake.known.week - timedelta(days=7 * int(request.param))


def _latest(lake: LakeFixture, table: tables.Table, key: tuple[str, ...], week: date) -> list[dict[str, Any]]:
    """Return the week's rows at their latest revision."""
    rows = sorted(read_once(str(lake.root), table).to_pylist(), key=lambda row: row["revision"])
    expected = {tuple(row[name] for name in key): row for row in rows if row["week"] == week}
    return list(expected.values())


def test_the_fleets_quantiles(lake: LakeFixture, week: date) -> None:
    cards = lake.fill(fleet.PAGE, FleetView(week))["fleet-cards.children"]
    rows = {row["metric"]: row for row in _latest(lake, tables.FLEET_WEEKS, ("metric",), week)}
    for card, (metric, shown) in zip(cards, SHOWN.items(), strict=True):
        for name in ("median", "p90", "p99"):
            assert f"{shown(rows[metric][name])} {name}" in visible_text(card)


def test_the_fleets_table(lake: LakeFixture, week: date) -> None:
    shown = {row["cluster_id"]: row for row in lake.fill(fleet.PAGE, FleetView(week))["fleet-grid.rowData"]}
    stored = _latest(lake, tables.CLUSTER_WEEKS, ("cluster_id",), week)
    assert sorted(shown) == sorted(row["cluster_id"] for row in stored)
    for row in stored:
        line = shown[row["cluster_id"]]
        assert line["latency_p99_ms"] == row["latency_p99_us"] / 1000
        assert line["availability_percent"] == 100 * row["availability_ratio"]
        assert line["budget_left_min"] == row["latency_budget_left_minutes"]
        assert line["bad_minutes"] == row["bad_minutes"]


def test_the_causes_of_bad_minutes(lake: LakeFixture, week: date) -> None:
    (bars,) = lake.fill(fleet.PAGE, FleetView(week))["fleet-causes.figure"].data
    stored = read_once(str(lake.root), tables.BURN_CAUSES).to_pylist()
    expected = sorted(
        (row for row in stored if row["week"] == week), key=lambda row: -int(row["bad_minutes"])
    )
    assert list(zip(bars.y, bars.x, strict=True)) == [(row["cause"], row["bad_minutes"]) for row in expected]


@pytest.mark.parametrize("cluster_id", [ORDERS, PAYMENTS, SEARCH])
def test_a_clusters_week(lake: LakeFixture, week: date, cluster_id: str) -> None:
    stored = _latest(lake, tables.CLUSTER_WEEKS, ("cluster_id",), week)
    row = next(row for row in stored if row["cluster_id"] == cluster_id)
    cards = visible_text(lake.fill(cluster.PAGE, ClusterView(cluster_id, week))["cluster-cards.children"])
    for metric, shown in SHOWN.items():
        assert shown(row[metric]) in cards
    assert f"with failures: {format_milliseconds(row['latency_p99_censored_us'])}" in cards
    text = visible_text(lake.fill(why.PAGE, WhyView(cluster_id, week))["why-text.children"])
    assert f"{row['bad_minutes']:,} over {format_milliseconds(row['latency_objective_us'])}" in text
    assert format_percent(row["availability_ratio"], 4) in text


def test_the_reviews_headline(lake: LakeFixture, week: date) -> None:
    text = visible_text(lake.fill(review.PAGE, ReviewView(week))["review-text.children"])
    for row in _latest(lake, tables.FLEET_WEEKS, ("metric",), week):
        for name in ("median", "p90", "p99"):
            assert SHOWN[row["metric"]](row[name]) in text
    stored = _latest(lake, tables.CLUSTER_WEEKS, ("cluster_id",), week)
    bad = sum(row["bad_minutes"] for row in stored)
    assert f"Of {len(stored)} clusters" in text
    assert f"{bad:,} minutes summed over all clusters" in text


def test_the_reviews_causes(lake: LakeFixture, week: date) -> None:
    text = visible_text(lake.fill(review.PAGE, ReviewView(week))["review-text.children"])
    for row in read_once(str(lake.root), tables.BURN_CAUSES).to_pylist():
        if row["week"] == week:
            assert f"{row['cause']} {row['bad_minutes']}" in text


def test_the_charts_show_the_minutes_of_silver(lake: LakeFixture) -> None:
    span = Span(NOW - timedelta(minutes=60), NOW)
    filled = lake.fill(cluster.PAGE, ClusterView(ORDERS, shown=span))
    held = read_once(str(lake.root), tables.CLUSTER_MINUTES).to_pylist()
    expected = sorted(
        (row for row in held if row["cluster_id"] == ORDERS and span.start <= row["minute"] < span.end),
        key=lambda row: row["minute"],
    )
    traces = {trace.name: trace for trace in filled["cluster-latency.figure"].data}
    assert list(traces["p99 of successes"].y) == [row["latency_p99_us"] / 1000 for row in expected]
    assert list(traces["with failures"].y) == [row["latency_p99_censored_us"] / 1000 for row in expected]
    (pooled,) = [trace for trace in filled["cluster-availability.figure"].data if trace.name]
    assert list(pooled.y) == [100 * row["availability_pooled"] for row in expected]
    worst = [trace for trace in filled["cluster-worst.figure"].data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in worst) == len(expected)


def test_the_alerts_of_the_week(lake: LakeFixture) -> None:
    events = read_once(str(lake.root), tables.HEALTH_EVENTS).to_pylist()
    named = [row for row in events if row["to_state"] == "BROKER_DOWN"]
    first = NOW - timedelta(days=NOW.weekday(), hours=NOW.hour)
    this_week = [row for row in named if row["at"] >= first]
    filled = lake.fill(alerts.PAGE, AlertsView())
    assert f"Opened this week {len(this_week)}" in visible_text(filled["alerts-cards.children"]).replace(
        "? ", ""
    )
    listed = visible_text(filled["alerts-open.children"]) + visible_text(filled["alerts-history.children"])
    assert listed.count("BROKER_DOWN") >= len(named)


def test_quarantined_records_and_failed_checks(lake: LakeFixture) -> None:
    filled = lake.fill(quality.PAGE, QualityView())
    refused = read_once(str(lake.root), tables.QUARANTINE).to_pylist()
    bars = [trace for trace in filled["quality-refused.figure"].data if trace.type == "bar"]
    assert sum(sum(bar.y) for bar in bars) == len(refused)
    rows = read_once(str(lake.root), tables.QUALITY).to_pylist()
    checks = [row for row in rows if row["suite"] == "silver"]
    failed = sum(not row["success"] for row in checks)
    assert f"{failed} of {len(checks) // 2}" in visible_text(filled["quality-gates.children"])
