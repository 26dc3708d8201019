"""The key figures, spans and links of the cluster page."""

from datetime import UTC, date, datetime, timedelta

import pytest

from fleetgauge_dashboards.links import ClusterView, MinuteView, Span, Window
from fleetgauge_dashboards.views.cluster import (
    ObjectiveVerdict,
    find_week,
    resolve_click,
    resolve_span,
    resolve_week_and_span,
    week_key_figures,
    week_span,
    zoom_view,
)
from fleetgauge_dashboards.views.freshness import DataAge, Freshness
from tests.unit.dashboards.frames import START, WEEK, cluster_week, minute

HOUR = Span(START, minute(60))


def test_each_key_figure_has_its_unit_objective_and_verdict() -> None:
    latency, budget, availability, coverage = week_key_figures(cluster_week())
    assert (latency.value, latency.verdict) == ("43.1 ms", ObjectiveVerdict.MET)
    assert latency.notes == ("objective: 99% of minutes ≤ 100 ms", "with failures: 92.5 ms")
    assert (budget.value, budget.notes) == ("62.8 min", ("of 100.8 min so far", "38 bad minutes"))
    assert (availability.value, availability.verdict) == ("99.934%", ObjectiveVerdict.MISSED)
    assert (coverage.value, coverage.verdict) == ("99.87%", ObjectiveVerdict.MET)


def test_an_unmeasured_number_has_an_unknown_verdict() -> None:
    nothing = cluster_week(
        latency_p99_us=None, latency_budget_left_minutes=None, availability_ratio=None, coverage=None
    )
    assert {number.verdict for number in week_key_figures(nothing)} == {ObjectiveVerdict.UNKNOWN}


def test_the_week_with_the_day_is_found_or_the_newest_without_a_day() -> None:
    weeks = [cluster_week(week=WEEK - timedelta(days=7 * back)) for back in (2, 0, 1)]
    day = WEEK - timedelta(days=7)
    assert find_week(weeks, day) == find_week(weeks, day + timedelta(days=6)) == weeks[2]
    assert find_week(weeks, WEEK + timedelta(days=7)) is None
    assert find_week(weeks, None) == weeks[1]
    assert find_week([], None) is None


def test_a_week_determines_the_minutes_shown_and_minutes_determine_the_week() -> None:
    weeks = [cluster_week(week=WEEK - timedelta(days=7 * back)) for back in range(3)]
    until = minute(90)

    def shown(view: ClusterView, zone: str = "UTC") -> tuple[object, date | None]:
        resolved, week = resolve_week_and_span(view, weeks, zone, until)
        return resolved.shown, week.week if week else None

    before = WEEK - timedelta(days=7)
    assert shown(ClusterView("a")) == (Window.HOUR, WEEK)
    assert shown(ClusterView("a", before)) == (week_span(before, "UTC"), before)
    assert shown(ClusterView("a", before, Window.DAY)) == (week_span(before, "UTC"), before)
    assert shown(ClusterView("a", WEEK)) == (Span(week_span(WEEK, "UTC").start, until), WEEK)
    assert shown(ClusterView("a", WEEK, HOUR)) == (HOUR, WEEK)
    assert shown(ClusterView("a", WEEK + timedelta(days=70)))[1] is None
    old = Span(minute(-14 * 1440), minute(-14 * 1440 + 60))
    assert shown(ClusterView("a", shown=old)) == (old, WEEK - timedelta(days=14))
    first = Span(week_span(WEEK, "Asia/Tokyo").start, minute(0))
    assert shown(ClusterView("a", shown=first), "Asia/Tokyo") == (first, WEEK)
    assert shown(ClusterView("a", shown=first)) == (first, before)


def test_a_click_on_a_chart_of_a_week_zooms_in_instead_of_opening_a_minute() -> None:
    assert isinstance(resolve_click(ClusterView("a"), "2026-03-02 10:00:00"), MinuteView)
    closer = resolve_click(ClusterView("a", WEEK), "2026-03-02 10:00:00")
    assert isinstance(closer, ClusterView)
    assert isinstance(closer.shown, Span)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (DataAge.FRESH, minute(10)),
        (DataAge.STALE, minute(31)),
        (DataAge.ENDED, minute(10)),
        (DataAge.NONE, minute(31)),
    ],
)
def test_a_moving_window_over_stale_data_shows_the_delay_as_a_gap(state: DataAge, end: datetime) -> None:
    fresh = Freshness(
        None if state is DataAge.NONE else minute(10), timedelta(0), state, 0, 0, {}, frozenset()
    )
    now = minute(30) + timedelta(seconds=20)
    assert resolve_span(ClusterView("a"), fresh, now) == Span(end - timedelta(hours=1), end)
    assert resolve_span(ClusterView("a", shown=HOUR), fresh, now) == HOUR


def test_a_week_with_a_clock_change_is_shorter_or_longer() -> None:
    spring, autumn = (week_span(week, "Europe/Berlin") for week in (date(2026, 3, 23), date(2026, 10, 19)))
    assert spring == Span(datetime(2026, 3, 22, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    assert autumn.end - autumn.start == timedelta(days=7, hours=1)


def test_a_zoom_on_the_time_axis_sets_whole_minutes_in_the_url() -> None:
    dragged = {"xaxis.range[0]": "2026-03-02 10:05:12.3456", "xaxis.range[1]": "2026-03-02 10:20:59"}
    view = ClusterView("a", shown=Window.DAY)
    assert zoom_view(view, dragged) == ClusterView("a", shown=Span(minute(5), minute(21)))


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"autosize": True},
        {"xaxis.range[0]": "x", "xaxis.range[1]": "y"},
        {"xaxis.range[0]": "2026-03-02"},
    ],
)
def test_an_event_without_a_new_time_range_does_not_change_the_view(event: dict[str, object]) -> None:
    assert zoom_view(ClusterView("a"), event) is None
