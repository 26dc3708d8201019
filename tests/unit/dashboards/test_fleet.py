"""The numbers of the fleet page."""

from collections.abc import Sequence
from datetime import date, timedelta

import pyarrow as pa

from fleetgauge_core.contract import HealthEvent
from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.reader import ClusterWeek, FleetWeek
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts
from fleetgauge_dashboards.views.fleet import (
    AVAILABILITY,
    LATENCY,
    FleetOverview,
    build_fleet_overview,
    select_members,
)
from fleetgauge_dashboards.views.fleet_rows import ClusterContext
from fleetgauge_dashboards.views.freshness import NO_DATA, DataAge, Freshness
from fleetgauge_dashboards.views.weeks import find_week_of_day
from tests.unit.dashboards.frames import START, WEEK, cluster_week, fleet_week

#: A history without earlier weeks.
HISTORY = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("week", pa.date32()),
        ("revision", pa.int32()),
        ("latency_p99_us", pa.int64()),
    ]
).empty_table()


def _build(
    clusters: list[ClusterWeek],
    of_fleet: list[FleetWeek] | None = None,
    day: date | None = None,
    alerts: Sequence[HealthAlert] = (),
    fresh: Freshness = NO_DATA,
    search: str | None = None,
) -> FleetOverview:
    """Build the overview as the page does: of the selected week and its clusters."""
    weeks = sorted({row.week for row in (*clusters, *(of_fleet or ()))}, reverse=True)
    week = find_week_of_day(weeks, day)
    assert week is not None
    clusters_of_week = [row for row in clusters if row.week == week]
    context = ClusterContext(alerts, fresh, HISTORY, {}, {})
    return build_fleet_overview(
        week, weeks, clusters_of_week, of_fleet or [], (), context, FleetView(day, search)
    )


def test_without_weeks_no_week_is_found() -> None:
    assert find_week_of_day([], WEEK) is None


def test_a_p99_of_few_clusters_is_described_as_their_extreme() -> None:
    model = _build([cluster_week()], [fleet_week(LATENCY, 2), fleet_week(AVAILABILITY, 99)])
    latency, availability, _ = model.headlines
    assert latency.sample_note == "p99 is the maximum of 2 clusters"
    assert availability.sample_note == "p99 is the minimum of 99 clusters"


def test_a_p99_of_many_clusters_is_described_by_their_number() -> None:
    assert _build([], [fleet_week(LATENCY, 100)]).headlines[0].sample_note == "over 100 clusters"


def test_a_fleet_without_enough_coverage_has_no_headline() -> None:
    empty = fleet_week(LATENCY, 0, median=None, p90=None, p99=None)
    latency = _build([], [empty]).headlines[0]
    assert (latency.p99, latency.sample_note) == ("–", "no cluster with enough coverage yet")


def test_a_quantile_links_to_a_cluster_with_that_value_and_enough_coverage() -> None:
    clusters = [
        cluster_week("a", latency_p99_us=9_000, coverage=0.5),
        cluster_week("b", latency_p99_us=9_000),
        cluster_week("c", latency_p99_us=5_000),
    ]
    of_fleet = fleet_week(LATENCY, 2, median=5_000.0, p90=9_000.0, p99=7_000.0)
    assert _build(clusters, [of_fleet]).headlines[0].clusters == {"median": "c", "p90": "b"}


def test_excluded_clusters_are_listed_with_their_coverage() -> None:
    model = _build([cluster_week("a"), cluster_week("b", coverage=0.7149), cluster_week("c", coverage=None)])
    assert model.excluded == "Excluded, coverage below 90%: c (–), b (71.4%)"


def test_the_worst_cluster_comes_first() -> None:
    down = HealthEvent("e", "f", "d", 2, START, "HEALTHY", "BROKER_DOWN", "BROKER_DOWN", "{}")
    silent = {"c": timedelta(minutes=12)}
    fresh = Freshness(START, timedelta(0), DataAge.FRESH, 9, 9, silent, frozenset("abcd"))
    weeks = [
        cluster_week("a", latency_budget_left_minutes=90.0),
        cluster_week("b", latency_budget_left_minutes=-3.0),
        cluster_week("c"),
        cluster_week("d", latency_budget_left_minutes=100.0),
        cluster_week("e", latency_budget_left_minutes=None),
    ]
    rows = _build(weeks, alerts=fold_alerts([down]), fresh=fresh).rows
    assert [row.cluster_id for row in rows] == ["d", "c", "e", "b", "a"]
    assert [row.state for row in rows] == [
        "▲ BROKER_DOWN broker 2",
        "◌ NO DATA for 12 min",
        "◌ NO DATA for more than a day",
        "● no alert",
        "● no alert",
    ]


def test_the_week_that_contains_the_day_is_selected() -> None:
    before = WEEK - timedelta(days=7)
    weeks = [cluster_week(), cluster_week(week=before, closed=True, revision=2)]
    assert _build(weeks, day=before).revision_state == "closed, revision 2"
    assert _build(weeks, day=before).rows[0].link == f"/cluster/orders-eu?week={before}"
    assert _build(weeks, day=before + timedelta(days=2)).week == before
    weeks_held = [before, WEEK]
    assert [find_week_of_day(weeks_held, WEEK + timedelta(days=days)) for days in (6, 7, -8)] == [
        WEEK,
        None,
        None,
    ]
    assert find_week_of_day(weeks_held, None) == WEEK


def test_a_week_without_a_row_is_a_gap_in_the_trend() -> None:
    rows = [fleet_week(LATENCY, week=WEEK - timedelta(days=7 * back)) for back in (4, 3, 0)]
    trend = _build([cluster_week()], rows).trends[0]
    assert trend.weeks == tuple(WEEK - timedelta(days=7 * back) for back in (4, 3, 2, 1, 0))
    assert trend.p99 == (1.0, 1.0, None, None, 1.0)


def test_where_alerts_cannot_be_read_the_state_is_unknown() -> None:
    context = ClusterContext(None, NO_DATA, HISTORY, {}, {})
    model = build_fleet_overview(WEEK, [WEEK], [cluster_week()], [], (), context, FleetView())
    assert [row.state for row in model.rows] == ["? alerts unknown"]


def test_a_search_ignores_case_and_matches_parts_of_names() -> None:
    model = _build(
        [cluster_week("Orders-EU"), cluster_week("orders-us"), cluster_week("search")], search="ORDERS"
    )
    assert [row.cluster_id for row in model.rows] == ["Orders-EU", "orders-us"]
    assert (model.clusters, model.matching) == (3, 2)


def test_with_thousands_of_clusters_the_worst_are_shown_and_search_finds_the_others() -> None:
    weeks = [cluster_week(f"c{n:04}", latency_budget_left_minutes=float(n)) for n in range(3_000)]
    model = _build(weeks)
    assert [row.cluster_id for row in model.rows] == [f"c{n:04}" for n in range(500)]
    assert (model.clusters, model.matching) == (3_000, 3_000)
    assert [row.cluster_id for row in _build(weeks, search="c2999").rows] == ["c2999"]


def _build_with_segments(view: FleetView) -> FleetOverview:
    fleet_weeks = [fleet_week(LATENCY), fleet_week(AVAILABILITY)]
    segment_weeks = [
        fleet_week(metric, clusters, segment_value=value, p99=p99, week=WEEK - timedelta(days=7 * back))
        for value, clusters, p99 in (("eu", 2, 40_000.0), ("us", 3, 90_000.0))
        for metric in (LATENCY, AVAILABILITY)
        for back in (0, 1)
    ]
    return build_fleet_overview(
        WEEK,
        [WEEK],
        [cluster_week()],
        fleet_weeks,
        segment_weeks,
        ClusterContext((), NO_DATA, HISTORY, {}, {}),
        view,
    )


def test_segment_trends_have_the_same_order_slowest_value_first() -> None:
    model = _build_with_segments(FleetView(by="region"))
    latency, availability = model.segment_trends
    assert list(latency) == ["us", "eu"]
    assert list(availability) == ["us", "eu"]
    assert latency["us"].p99 == (90_000.0, 90_000.0)
    assert [(row.value, row.clusters, row.latency.p99) for row in model.segments] == [
        ("eu", 2, "40.0 ms"),
        ("us", 3, "90.0 ms"),
    ]
    assert model.segments[0].view == FleetView(by="region", value="eu")


def test_a_segments_value_selects_its_clusters() -> None:
    clusters = [cluster_week("a"), cluster_week("b")]
    segments = {"a": frozenset({("region", "eu")}), "b": frozenset({("region", "us")})}
    assert select_members(clusters, segments, FleetView(by="region", value="eu")) == (clusters[0],)
    assert select_members(clusters, segments, FleetView(by="region")) == tuple(clusters)
    assert select_members(clusters, segments, FleetView()) == tuple(clusters)
    assert select_members(clusters, {}, FleetView(by="region", value="eu")) == tuple(clusters)


def test_a_row_has_its_trend_burn_rates_and_kafka_version() -> None:
    rows = [(WEEK - timedelta(days=7 * back), 0, 40_000 + 10_000 * back) for back in range(3)]
    rows.append((WEEK - timedelta(days=7), 1, 86_200))
    history = pa.Table.from_pylist(
        [
            {"cluster_id": "orders-eu", "week": week, "revision": revision, "latency_p99_us": us}
            for week, revision, us in rows
        ],
        schema=HISTORY.schema,
    )
    segments = {"orders-eu": frozenset({("kafka", "4.3.1"), ("region", "eu")})}
    context = ClusterContext((), NO_DATA, history, {"orders-eu": (2.0, None)}, segments)
    week = cluster_week(latency_p99_us=43_100)
    (row,) = build_fleet_overview(WEEK, [WEEK], [week], [], [], context, FleetView()).rows
    assert row.times_before == 0.5
    assert row.trend == "▄█▁"
    assert (row.burn_1h, row.burn_6h, row.version) == (2.0, None, "4.3.1")
    later = WEEK + timedelta(days=7)
    (past,) = build_fleet_overview(WEEK, [later, WEEK], [week], [], [], context, FleetView(WEEK)).rows
    assert (past.burn_1h, past.trend) == (None, "▄█▁")
