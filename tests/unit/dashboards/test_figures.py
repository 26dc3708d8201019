"""Figures show what their models contain, also without colour."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.figures.brokers import plot_heatmap, plot_leader_latency, plot_skew
from fleetgauge_dashboards.figures.minutes import plot_availability, plot_latency, plot_worst_homes
from fleetgauge_dashboards.figures.theme import (
    DARK,
    LIGHT,
    Theme,
    build_count_axis,
    compute_log_ticks,
    select_theme,
)
from fleetgauge_dashboards.figures.time_series import ChartContext
from fleetgauge_dashboards.figures.trend import plot_segment_trends, plot_trend
from fleetgauge_dashboards.links import (
    Span,
)
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.bands import Band, BandKind
from fleetgauge_dashboards.views.fleet import LATENCY, QuantileTrend
from fleetgauge_dashboards.views.minutes import (
    BrokerTimeline,
    BrokerTimelines,
    ClusterTimeline,
    TimeGrid,
    TimelineStep,
)
from tests.unit.dashboards.frames import START, WEEK, minute

SPAN = Span(START, minute(4))
STEPS = TimeGrid(START, 1, 4)
GOOD = TimelineStep(40.0, 40.0, 1, 1.0, 0)
OUTAGE = TimelineStep(None, 10_000.0, None, 0.0, 1)
LINE = ClusterTimeline(STEPS, (GOOD, None, OUTAGE, GOOD), 100.0, (Span(minute(1), minute(2)),))
MAP = BrokerTimelines(
    STEPS,
    (
        BrokerTimeline(1, (3.0, None, 3.0, 3.0), (3.0, None, 3.0, 3.0), (Span(minute(1), minute(2)),)),
        BrokerTimeline(2, (3.0, 4.0, None, 4.0), (3.0, 4.0, 5_000.0, 4.0), ()),
    ),
)
QUIET = ChartContext(SPAN, TimeFormat("UTC"), (), "r")
DOWN = replace(QUIET, bands=(Band(Span(minute(2), minute(4)), "BROKER_DOWN broker 2", BandKind.FINDING),))

both_schemes = pytest.mark.parametrize("theme", [LIGHT, DARK])


def _traces(figure: Any) -> dict[str, Any]:
    return {trace.name or trace.type: trace for trace in figure.data}


def test_the_colour_scheme_selects_the_theme() -> None:
    assert (select_theme("dark"), select_theme("light"), select_theme(None)) == (DARK, LIGHT, LIGHT)


@both_schemes
def test_a_gap_is_hatched_and_interrupts_the_line(theme: Theme) -> None:
    traces = _traces(plot_latency(LINE, QUIET, theme))
    assert list(traces["p99 of successes"].y) == [40.0, None, None, 40.0]
    assert not traces["p99 of successes"].connectgaps
    hatched = traces["not measured"]
    assert list(hatched.base) == ["2026-03-02 10:01:00"]
    assert list(hatched.x) == [60_000]
    assert hatched.marker.pattern.shape == "/"
    # On the log axis of latency, hatching from 0 to 1 would be below everything that is drawn.
    axis = plot_latency(LINE, QUIET, theme).layout.yaxis2
    assert (axis.type, list(axis.range)) == ("linear", [0, 1])


@both_schemes
def test_a_bad_minute_has_a_symbol_and_an_outage_is_drawn_at_the_deadline(theme: Theme) -> None:
    traces = _traces(plot_latency(LINE, DOWN, theme))
    assert list(traces["with failures"].y) == [40.0, None, 10_000.0, 40.0]
    assert list(traces["bad minute"].x) == ["2026-03-02 10:02:00"]
    assert traces["bad minute"].marker.symbol == "triangle-up"


def test_the_objective_and_the_finding_are_labelled() -> None:
    texts = [note.text for note in plot_latency(LINE, DOWN, LIGHT).layout.annotations]
    assert texts == ["objective<br>100 ms", "▲ BROKER_DOWN broker 2"]


def test_the_time_axis_is_exactly_the_span_without_offsets() -> None:
    for figure in (
        plot_latency(LINE, QUIET, LIGHT),
        plot_heatmap(MAP, Leg.CLIENT, 100.0, QUIET, LIGHT),
    ):
        assert list(figure.layout.xaxis.range) == ["2026-03-02 10:00:00", "2026-03-02 10:04:00"]


def test_all_time_charts_share_their_margins() -> None:
    charts = (
        plot_latency(LINE, QUIET, LIGHT),
        plot_availability(LINE, QUIET, LIGHT),
        plot_heatmap(MAP, Leg.LEADER, 100.0, QUIET, LIGHT),
        plot_leader_latency(MAP, QUIET, LIGHT),
    )
    assert len({(chart.layout.margin.l, chart.layout.margin.r) for chart in charts}) == 1


def test_the_axis_of_a_perfect_hour_contains_100_percent() -> None:
    figure = plot_availability(ClusterTimeline(STEPS, (GOOD,) * 4, 100.0), QUIET, LIGHT)
    low, high = figure.layout.yaxis.range
    assert low < 100 < high


def test_the_heatmap_leaves_gaps_empty_and_hatches_them() -> None:
    traces = _traces(plot_heatmap(MAP, Leg.LEADER, 100.0, DOWN, LIGHT))
    cells = traces["heatmap"]
    assert cells.z[0][1] is None
    assert cells.customdata[1][2] == "5,000 ms"
    assert list(traces["not measured"].y) == ["broker 1"]
    assert list(traces["over 100 ms"].y) == ["broker 2"]


def test_the_heatmaps_colour_scale_is_fixed_and_breaks_at_the_objective() -> None:
    cells = _traces(plot_heatmap(MAP, Leg.CLIENT, 100.0, QUIET, LIGHT))["heatmap"]
    assert (cells.zmin, cells.zmax) == (0.0, 4.0)
    assert [stop for stop, _ in cells.colorscale] == [0.0, 0.5, 0.5, 1.0]


def test_a_broker_with_only_failures_is_still_drawn() -> None:
    traces = _traces(plot_leader_latency(MAP, DOWN, LIGHT))
    assert list(traces["broker 2"].y) == [3.0, 4.0, None, 4.0]
    assert list(traces["broker 2 failing"].y) == [5_000.0]
    assert traces["broker 1"].line.dash != traces["broker 2"].line.dash


def test_with_many_brokers_only_the_slowest_are_labelled() -> None:
    rows = tuple(BrokerTimeline(i, (float(i),) * 4, (float(i),) * 4, ()) for i in range(1, 31))
    figure = plot_leader_latency(BrokerTimelines(STEPS, rows), QUIET, LIGHT)
    assert [trace.name for trace in figure.data if trace.showlegend] == [f"broker {i}" for i in range(23, 31)]


def test_the_worst_broker_has_a_tick_in_its_row_and_bad_minutes_their_own_colour() -> None:
    figure = plot_worst_homes(LINE, QUIET, LIGHT)
    (ticks,) = [trace for trace in figure.data if trace.mode == "markers"]
    assert set(ticks.y) == {"broker 1"}
    assert list(ticks.marker.line.color) == [LIGHT.good, LIGHT.good]


def test_skew_is_the_slowest_over_the_median() -> None:
    rows = tuple(BrokerTimeline(n, (ms,), (ms,), ()) for n, ms in ((1, 2.0), (2, 4.0), (3, 10.0)))
    assert BrokerTimelines(TimeGrid(START, 1, 1), rows).skew == (2.5,)
    assert MAP.skew == (1.0, None, None, 4 / 3.5)
    drawn = _traces(plot_skew(MAP, QUIET, LIGHT))
    assert list(drawn["scatter"].y) == list(MAP.skew)


@both_schemes
def test_corrections_and_actions_are_labelled_beside_findings(theme: Theme) -> None:
    bands = tuple(
        Band(Span(minute(number), minute(number + 1)), kind, kind) for number, kind in enumerate(BandKind)
    )
    figure = plot_latency(LINE, replace(QUIET, bands=bands), theme)
    texts = [note.text for note in figure.layout.annotations][1:]
    assert texts == ["▲ finding", "⊘ correction", "◆ action", "◇ change"]
    edges = {
        shape.line.dash for shape in figure.layout.shapes if shape.type == "line" and shape.x0 == shape.x1
    }
    assert edges == {"dot", "solid", "dash", "longdash", "dashdot"}


def test_hovering_shows_the_local_time() -> None:
    berlin = replace(QUIET, times=TimeFormat("Europe/Berlin"))
    hover_line = plot_latency(LINE, berlin, LIGHT).data[0]
    assert hover_line.customdata[0] == "Mon 02 Mar 2026 11:00 CET"
    cells = _traces(plot_heatmap(MAP, Leg.CLIENT, 100.0, berlin, LIGHT))["heatmap"]
    assert cells.text[0][3] == "Mon 02 Mar 2026 11:03 CET"
    assert list(plot_latency(LINE, berlin, LIGHT).layout.xaxis.ticktext) == [
        "11:00",
        "11:01",
        "11:02",
        "11:03",
        "11:04",
    ]


def test_a_segment_with_many_values_labels_the_worst_eight() -> None:
    none = (None,)
    trends = {
        f"v{n}": QuantileTrend(LATENCY, (WEEK,), none, none, (1_000.0 * n,), (3,), frozenset())
        for n in range(20, 0, -1)
    }
    figure = plot_segment_trends(LATENCY, trends, LIGHT)
    assert len(figure.data) == 20
    assert {trace.name for trace in figure.data if trace.showlegend} == {f"v{n}" for n in range(13, 21)}
    assert len({trace.line.dash for trace in figure.data if trace.showlegend}) >= 6


def test_an_open_week_has_hollow_markers() -> None:
    model = QuantileTrend(LATENCY, (WEEK,), (40_000.0,), (50_000.0,), (None,), (2,), frozenset({WEEK}))
    traces = _traces(plot_trend(model, LIGHT))
    assert list(traces["median"].marker.symbol) == ["diamond-open"]
    assert (list(traces["p90"].y), list(traces["p99"].y)) == ([50.0], [None])


def test_figures_can_be_drawn_without_data() -> None:
    without_minutes = ClusterTimeline(STEPS, (None,) * 4, None)
    without_brokers = BrokerTimelines(STEPS, ())
    assert plot_latency(without_minutes, QUIET, LIGHT).data
    assert plot_availability(without_minutes, QUIET, LIGHT).data
    assert plot_heatmap(without_brokers, Leg.CLIENT, None, QUIET, LIGHT).data
    assert plot_leader_latency(without_brokers, QUIET, LIGHT).layout.xaxis.range


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(15, 150, [20, 50, 100]), (2, 20_000, [10, 100, 1000, 10_000])]
)
def test_ticks_are_round_and_do_not_crowd(low: float, high: float, ticks: list[float]) -> None:
    assert compute_log_ticks(low, high) == ticks


@given(st.integers(0, 10**9))
def test_a_count_axis_has_few_steps_of_whole_numbers(most: int) -> None:
    axis = build_count_axis(most)
    assert axis["dtick"] == int(axis["dtick"]) >= 1
    assert most <= 4 * axis["dtick"] <= max(4, 10 * most)
    assert axis["visible"] == bool(most)


@pytest.mark.parametrize("count", [1, 10, 11, 35, 52])
def test_only_as_many_weeks_are_labelled_as_fit_always_with_the_newest(count: int) -> None:
    weeks = tuple(date(2026, 1, 5) + timedelta(days=7 * n) for n in range(count))
    none = (None,) * count
    axis = plot_trend(
        QuantileTrend(LATENCY, weeks, none, none, none, (3,) * count, frozenset()), LIGHT
    ).layout.xaxis
    assert len(axis.ticktext) <= 5
    assert axis.tickvals[0] == f"{weeks[-1]:%d %b %Y}"
    assert {f"{week:%d %b %Y}" for week in weeks} >= set(axis.tickvals)
