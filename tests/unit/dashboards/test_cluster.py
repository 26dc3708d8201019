"""The cluster page's numbers, bands and spans."""

from datetime import UTC, date, datetime, timedelta

import pytest

from fleetgauge_dashboards.links import ClusterView, MinuteView, Span, Window
from fleetgauge_dashboards.views.cluster import (
    Verdict,
    clicked,
    find_week,
    numbers,
    settled,
    span_shown,
    week_span,
    zoomed,
)
from fleetgauge_dashboards.views.freshness import Age, Freshness
from tests.unit.dashboards.frames import START, WEEK, cluster_week, minute

HOUR = Span(START, minute(60))


def test_each_number_has_its_unit_its_objective_and_its_verdict() -> None:
    latency, budget, availability, coverage = numbers(cluster_week())
    assert (latency.value, latency.verdict) == ("43.1 ms", Verdict.MET)
    assert latency.notes == ("objective: 99% of minutes ≤ 100 ms", "failures counted: 92.5 ms")
    assert (budget.value, budget.notes) == ("62.8 min", ("of 100.8 min so far", "38 bad minutes"))
    assert (availability.value, availability.verdict) == ("99.934%", Verdict.MISSED)
    assert (coverage.value, coverage.verdict) == ("99.87%", Verdict.MET)


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    nothing = cluster_week(
        latency_p99_us=None, latency_budget_left_minutes=None, availability_ratio=None, coverage=None
    )
    assert {number.verdict for number in numbers(nothing)} == {Verdict.UNKNOWN}


def test_the_week_with_the_asked_day_is_found_or_the_newest_if_none_is_asked() -> None:
    weeks = [cluster_week(week=WEEK - timedelta(days=7 * back)) for back in (2, 0, 1)]
    asked = WEEK - timedelta(days=7)
    assert find_week(weeks, asked) == find_week(weeks, asked + timedelta(days=6)) == weeks[2]
    assert find_week(weeks, WEEK + timedelta(days=7)) is None
    assert find_week(weeks, None) == weeks[1]
    assert find_week([], None) is None


def test_a_weeks_minutes_and_the_minutes_week_go_together() -> None:
    weeks = [cluster_week(week=WEEK - timedelta(days=7 * back)) for back in range(3)]
    until = minute(90)

    def shown(view: ClusterView, zone: str = "UTC") -> tuple[object, date | None]:
        found, week = settled(view, weeks, zone, until)
        return found.shown, week.week if week else None

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


def test_a_click_on_a_weeks_chart_leads_closer_and_not_to_a_minute() -> None:
    assert isinstance(clicked(ClusterView("a"), "2026-03-02 10:00:00"), MinuteView)
    closer = clicked(ClusterView("a", WEEK), "2026-03-02 10:00:00")
    assert isinstance(closer, ClusterView)
    assert isinstance(closer.shown, Span)


@pytest.mark.parametrize(
    ("state", "end"),
    [(Age.FRESH, minute(10)), (Age.STALE, minute(31)), (Age.ENDED, minute(10)), (Age.NONE, minute(31))],
)
def test_a_moving_window_shows_lateness_as_a_gap(state: Age, end: datetime) -> None:
    fresh = Freshness(None if state is Age.NONE else minute(10), timedelta(0), state, 0, 0, {}, frozenset())
    now = minute(30) + timedelta(seconds=20)
    assert span_shown(ClusterView("a"), fresh, now) == Span(end - timedelta(hours=1), end)
    assert span_shown(ClusterView("a", shown=HOUR), fresh, now) == HOUR


def test_a_week_with_a_clock_change_is_shorter_or_longer() -> None:
    spring, autumn = (week_span(week, "Europe/Berlin") for week in (date(2026, 3, 23), date(2026, 10, 19)))
    assert spring == Span(datetime(2026, 3, 22, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    assert autumn.end - autumn.start == timedelta(days=7, hours=1)


def test_a_drag_along_the_time_axis_is_whole_minutes_in_the_address() -> None:
    dragged = {"xaxis.range[0]": "2026-03-02 10:05:12.3456", "xaxis.range[1]": "2026-03-02 10:20:59"}
    view = ClusterView("a", shown=Window.DAY)
    assert zoomed(view, dragged) == ClusterView("a", shown=Span(minute(5), minute(21)))


@pytest.mark.parametrize(
    "moved",
    [
        {},
        {"autosize": True},
        {"xaxis.range[0]": "x", "xaxis.range[1]": "y"},
        {"xaxis.range[0]": "2026-03-02"},
    ],
)
def test_what_is_no_drag_leaves_the_address(moved: dict[str, object]) -> None:
    assert zoomed(ClusterView("a"), moved) is None
