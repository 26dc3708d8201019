"""The fleet page's numbers."""

from datetime import timedelta
from typing import Any

from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.reader import ClusterWeek, FleetWeek, HealthEvent
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.fleet import AVAILABILITY, LATENCY, Fleet, fleet
from fleetgauge_dashboards.views.freshness import NO_DATA, Age, Freshness
from tests.unit.dashboards.frames import START, WEEK, cluster_week, fleet_week


def _fleet(clusters: list[ClusterWeek], weeks: list[FleetWeek] | None = None, **more: Any) -> Fleet:
    given = {"view": FleetView(), "found": (), "fresh": NO_DATA} | more
    model = fleet(clusters, weeks or [], **given)
    assert model is not None
    return model


def test_no_week_is_no_page() -> None:
    assert fleet([], [], FleetView(), (), NO_DATA) is None


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


def test_clusters_that_do_not_count_are_named_with_the_reason() -> None:
    model = _fleet([cluster_week("a"), cluster_week("b", coverage=0.7149), cluster_week("c", coverage=None)])
    assert model.excluded == "Not counted, coverage under 90%: c (–), b (71.4%)"


def test_the_worst_cluster_comes_first() -> None:
    down = HealthEvent("e", "f", "d", 2, START, "HEALTHY", "BROKER_DOWN", "BROKER_DOWN", "{}")
    silent = (("c", timedelta(minutes=12)),)
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


def test_an_asked_week_is_shown_and_an_unknown_one_is_the_newest() -> None:
    before = WEEK - timedelta(days=7)
    weeks = [cluster_week(), cluster_week(week=before, closed=True, revision=2)]
    assert _fleet(weeks, view=FleetView(before)).standing == "closed, revision 2"
    assert _fleet(weeks, view=FleetView(before)).rows[0].link == f"/cluster/orders-eu?week={before}"
    assert _fleet(weeks, view=FleetView(WEEK + timedelta(days=70))).week == WEEK
