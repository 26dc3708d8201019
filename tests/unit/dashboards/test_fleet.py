"""The fleet page's numbers."""

from collections.abc import Sequence
from datetime import date, timedelta

import pyarrow as pa

from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.reader import ClusterWeek, FleetWeek, HealthEvent
from fleetgauge_dashboards.views.alerts import Alert, alerts
from fleetgauge_dashboards.views.fleet import AVAILABILITY, LATENCY, Fleet, fleet, members
from fleetgauge_dashboards.views.fleet_rows import Beside
from fleetgauge_dashboards.views.freshness import NO_DATA, Age, Freshness
from fleetgauge_dashboards.views.weeks import shown_week
from tests.unit.dashboards.frames import START, WEEK, cluster_week, fleet_week

#: No week before.
HISTORY = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("week", pa.date32()),
        ("revision", pa.int32()),
        ("latency_p99_us", pa.int64()),
    ]
).empty_table()


def _fleet(
    clusters: list[ClusterWeek],
    of_fleet: list[FleetWeek] | None = None,
    asked: date | None = None,
    found: Sequence[Alert] = (),
    fresh: Freshness = NO_DATA,
    search: str | None = None,
) -> Fleet:
    """As the page asks: the weeks that there are, and the clusters of the shown one."""
    weeks = sorted({row.week for row in (*clusters, *(of_fleet or ()))}, reverse=True)
    shown = shown_week(weeks, asked)
    assert shown is not None
    own = [row for row in clusters if row.week == shown]
    beside = Beside(found, fresh, HISTORY, {}, {})
    return fleet(shown, weeks, own, of_fleet or [], (), beside, FleetView(asked, search))


def test_no_week_is_no_page() -> None:
    assert shown_week([], WEEK) is None


def test_a_p99_of_few_clusters_says_that_it_is_their_extreme() -> None:
    model = _fleet([cluster_week()], [fleet_week(LATENCY, 2), fleet_week(AVAILABILITY, 99)])
    latency, availability, _ = model.headlines
    assert latency.sample == "p99 is the maximum of 2 clusters"
    assert availability.sample == "p99 is the minimum of 99 clusters"


def test_a_p99_of_many_clusters_is_a_p99() -> None:
    assert _fleet([], [fleet_week(LATENCY, 100)]).headlines[0].sample == "over 100 clusters"


def test_a_fleet_in_which_no_cluster_counts_has_no_number() -> None:
    empty = fleet_week(LATENCY, 0, median=None, p90=None, p99=None)
    latency = _fleet([], [empty]).headlines[0]
    assert (latency.p99, latency.sample) == ("–", "no cluster counts yet")


def test_a_quantile_is_the_number_of_a_cluster_that_counts() -> None:
    clusters = [
        cluster_week("a", latency_p99_us=9_000, coverage=0.5),
        cluster_week("b", latency_p99_us=9_000),
        cluster_week("c", latency_p99_us=5_000),
    ]
    of_fleet = fleet_week(LATENCY, 2, median=5_000.0, p90=9_000.0, p99=7_000.0)
    assert _fleet(clusters, [of_fleet]).headlines[0].whose == {"median": "c", "p90": "b"}


def test_clusters_that_do_not_count_are_named_with_the_reason() -> None:
    model = _fleet([cluster_week("a"), cluster_week("b", coverage=0.7149), cluster_week("c", coverage=None)])
    assert model.excluded == "Not counted, coverage under 90%: c (–), b (71.4%)"


def test_the_worst_cluster_comes_first() -> None:
    down = HealthEvent("e", "f", "d", 2, START, "HEALTHY", "BROKER_DOWN", "BROKER_DOWN", "{}")
    silent = {"c": timedelta(minutes=12)}
    fresh = Freshness(START, timedelta(0), Age.FRESH, 9, 9, silent, frozenset("abcd"))
    weeks = [
        cluster_week("a", latency_budget_left_minutes=90.0),
        cluster_week("b", latency_budget_left_minutes=-3.0),
        cluster_week("c"),
        cluster_week("d", latency_budget_left_minutes=100.0),
        cluster_week("e", latency_budget_left_minutes=None),
    ]
    rows = _fleet(weeks, found=alerts([down]), fresh=fresh).rows
    assert [row.cluster_id for row in rows] == ["d", "c", "e", "b", "a"]
    assert [row.state for row in rows] == [
        "▲ BROKER_DOWN broker 2",
        "◌ NO DATA for 12 min",
        "◌ NO DATA for more than a day",
        "● no alert",
        "● no alert",
    ]


def test_an_asked_week_is_the_one_with_that_day_and_an_unknown_one_is_none() -> None:
    before = WEEK - timedelta(days=7)
    weeks = [cluster_week(), cluster_week(week=before, closed=True, revision=2)]
    assert _fleet(weeks, asked=before).standing == "closed, revision 2"
    assert _fleet(weeks, asked=before).rows[0].link == f"/cluster/orders-eu?week={before}"
    assert _fleet(weeks, asked=before + timedelta(days=2)).week == before
    held = [before, WEEK]
    assert [shown_week(held, WEEK + timedelta(days=days)) for days in (6, 7, -8)] == [WEEK, None, None]
    assert shown_week(held, None) == WEEK


def test_a_week_without_a_row_has_its_place_in_the_trend() -> None:
    rows = [fleet_week(LATENCY, week=WEEK - timedelta(days=7 * back)) for back in (4, 3, 0)]
    trend = _fleet([cluster_week()], rows).trends[0]
    assert trend.weeks == tuple(WEEK - timedelta(days=7 * back) for back in (4, 3, 2, 1, 0))
    assert trend.p99 == (1.0, 1.0, None, None, 1.0)


def test_where_alerts_cannot_be_read_nobody_is_said_to_have_none() -> None:
    beside = Beside(None, NO_DATA, HISTORY, {}, {})
    model = fleet(WEEK, [WEEK], [cluster_week()], [], (), beside, FleetView())
    assert [row.state for row in model.rows] == ["? alerts not known"]


def test_a_search_finds_a_part_of_a_name_whatever_its_case() -> None:
    model = _fleet(
        [cluster_week("Orders-EU"), cluster_week("orders-us"), cluster_week("search")], search="ORDERS"
    )
    assert [row.cluster_id for row in model.rows] == ["Orders-EU", "orders-us"]
    assert (model.clusters, model.matching) == (3, 2)


def test_of_thousands_the_worst_are_shown_and_any_other_is_found() -> None:
    weeks = [cluster_week(f"c{n:04}", latency_budget_left_minutes=float(n)) for n in range(3_000)]
    model = _fleet(weeks)
    assert [row.cluster_id for row in model.rows] == [f"c{n:04}" for n in range(500)]
    assert (model.clusters, model.matching) == (3_000, 3_000)
    assert [row.cluster_id for row in _fleet(weeks, search="c2999").rows] == ["c2999"]


def _divided(view: FleetView) -> Fleet:
    own = [fleet_week(LATENCY), fleet_week(AVAILABILITY)]
    parts = [
        fleet_week(metric, clusters, segment_value=value, p99=p99, week=WEEK - timedelta(days=7 * back))
        for value, clusters, p99 in (("eu", 2, 40_000.0), ("us", 3, 90_000.0))
        for metric in (LATENCY, AVAILABILITY)
        for back in (0, 1)
    ]
    return fleet(WEEK, [WEEK], [cluster_week()], own, parts, Beside((), NO_DATA, HISTORY, {}, {}), view)


def test_a_fleet_is_divided_by_a_segment_in_one_order_the_slowest_value_first() -> None:
    model = _divided(FleetView(by="region"))
    latency, availability = model.divided
    assert list(latency) == ["us", "eu"]
    assert list(availability) == ["us", "eu"]
    assert latency["us"].p99 == (90_000.0, 90_000.0)
    assert [(one.value, one.clusters, one.latency.p99) for one in model.segments] == [
        ("eu", 2, "40.0 ms"),
        ("us", 3, "90.0 ms"),
    ]
    assert model.segments[0].view == FleetView(by="region", value="eu")


def test_of_a_segments_value_only_its_clusters_are_shown() -> None:
    clusters = [cluster_week("a"), cluster_week("b")]
    segments = {"a": frozenset({("region", "eu")}), "b": frozenset({("region", "us")})}
    assert members(clusters, segments, FleetView(by="region", value="eu")) == (clusters[0],)
    assert members(clusters, segments, FleetView(by="region")) == tuple(clusters)
    assert members(clusters, segments, FleetView()) == tuple(clusters)
    assert members(clusters, {}, FleetView(by="region", value="eu")) == tuple(clusters)


def test_a_line_has_its_last_weeks_its_burn_and_its_version() -> None:
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
    beside = Beside((), NO_DATA, history, {"orders-eu": (2.0, None)}, segments)
    week = cluster_week(latency_p99_us=43_100)
    (row,) = fleet(WEEK, [WEEK], [week], [], [], beside, FleetView()).rows
    assert row.times_before == 0.5
    assert row.trend == "▄█▁"
    assert (row.burn_1h, row.burn_6h, row.version) == (2.0, None, "4.3.1")
    later = WEEK + timedelta(days=7)
    (past,) = fleet(WEEK, [later, WEEK], [week], [], [], beside, FleetView(WEEK)).rows
    assert (past.burn_1h, past.trend) == (None, "▄█▁")
