"""Figures say what their models say, without colour too."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.figures.brokers import heatmap, leader_lines, skew
from fleetgauge_dashboards.figures.minutes import availability, latency, worst_homes
from fleetgauge_dashboards.figures.over_time import OverTime
from fleetgauge_dashboards.figures.theme import DARK, LIGHT, Theme, count_axis, log_ticks, theme
from fleetgauge_dashboards.figures.trend import divided, trend
from fleetgauge_dashboards.links import Leg, Span
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.bands import Band, What
from fleetgauge_dashboards.views.fleet import LATENCY, Trend
from fleetgauge_dashboards.views.minutes import Brokers, BrokerTimeline, Grid, Minute, Timeline
from tests.unit.dashboards.frames import START, WEEK, minute

SPAN = Span(START, minute(4))
STEPS = Grid(START, 1, 4)
GOOD = Minute(40.0, 40.0, 1, 1.0, 0)
OUTAGE = Minute(None, 10_000.0, None, 0.0, 1)
LINE = Timeline(STEPS, (GOOD, None, OUTAGE, GOOD), 100.0, (Span(minute(1), minute(2)),))
MAP = Brokers(
    STEPS,
    (
        BrokerTimeline(1, (3.0, None, 3.0, 3.0), (3.0, None, 3.0, 3.0), (Span(minute(1), minute(2)),)),
        BrokerTimeline(2, (3.0, 4.0, None, 4.0), (3.0, 4.0, 5_000.0, 4.0), ()),
    ),
)
QUIET = OverTime(SPAN, Times("UTC"), (), "r")
DOWN = replace(QUIET, bands=(Band(Span(minute(2), minute(4)), "BROKER_DOWN broker 2", What.FINDING),))

both_schemes = pytest.mark.parametrize("look", [LIGHT, DARK])


def _traces(figure: Any) -> dict[str, Any]:
    return {trace.name or trace.type: trace for trace in figure.data}


def test_the_scheme_chooses_the_theme() -> None:
    assert (theme("dark"), theme("light"), theme(None)) == (DARK, LIGHT, LIGHT)


@both_schemes
def test_a_gap_is_a_break_and_a_hatch_but_never_a_line(look: Theme) -> None:
    traces = _traces(latency(LINE, QUIET, look))
    assert list(traces["p99 of successes"].y) == [40.0, None, None, 40.0]
    assert not traces["p99 of successes"].connectgaps
    hatched = traces["not measured"]
    assert list(hatched.base) == ["2026-03-02 10:01:00"]
    assert list(hatched.x) == [60_000]
    assert hatched.marker.pattern.shape == "/"
    # On a log axis, as the latency's is, a hatch from 0 to 1 would lie below all that is drawn.
    axis = latency(LINE, QUIET, look).layout.yaxis2
    assert (axis.type, list(axis.range)) == ("linear", [0, 1])


@both_schemes
def test_a_bad_minute_has_a_symbol_and_the_outage_a_height(look: Theme) -> None:
    traces = _traces(latency(LINE, DOWN, look))
    assert list(traces["failures counted"].y) == [40.0, None, 10_000.0, 40.0]
    assert list(traces["bad minute"].x) == ["2026-03-02 10:02:00"]
    assert traces["bad minute"].marker.symbol == "triangle-up"


def test_the_objective_and_the_finding_are_named() -> None:
    texts = [note.text for note in latency(LINE, DOWN, LIGHT).layout.annotations]
    assert texts == ["objective<br>100 ms", "▲ BROKER_DOWN broker 2"]


def test_the_time_axis_is_exactly_the_span_and_free_of_offsets() -> None:
    for figure in (
        latency(LINE, QUIET, LIGHT),
        heatmap(MAP, Leg.CLIENT, 100.0, QUIET, LIGHT),
    ):
        assert list(figure.layout.xaxis.range) == ["2026-03-02 10:00:00", "2026-03-02 10:04:00"]


def test_all_time_charts_share_their_margins() -> None:
    charts = (
        latency(LINE, QUIET, LIGHT),
        availability(LINE, QUIET, LIGHT),
        heatmap(MAP, Leg.LEADER, 100.0, QUIET, LIGHT),
        leader_lines(MAP, QUIET, LIGHT),
    )
    assert len({(chart.layout.margin.l, chart.layout.margin.r) for chart in charts}) == 1


def test_the_axis_of_a_perfect_hour_ends_at_all() -> None:
    figure = availability(Timeline(STEPS, (GOOD,) * 4, 100.0), QUIET, LIGHT)
    low, high = figure.layout.yaxis.range
    assert low < 100 < high


def test_the_map_keeps_gaps_empty_and_hatches_them() -> None:
    traces = _traces(heatmap(MAP, Leg.LEADER, 100.0, DOWN, LIGHT))
    cells = traces["heatmap"]
    assert cells.z[0][1] is None
    assert cells.customdata[1][2] == "5,000 ms"
    assert list(traces["not measured"].y) == ["broker 1"]
    assert list(traces["over 100 ms"].y) == ["broker 2"]


def test_the_maps_colours_mean_the_same_everywhere_and_break_at_the_objective() -> None:
    cells = _traces(heatmap(MAP, Leg.CLIENT, 100.0, QUIET, LIGHT))["heatmap"]
    assert (cells.zmin, cells.zmax) == (0.0, 4.0)
    assert [stop for stop, _ in cells.colorscale] == [0.0, 0.5, 0.5, 1.0]


def test_a_broker_that_only_fails_does_not_vanish_from_the_lines() -> None:
    traces = _traces(leader_lines(MAP, DOWN, LIGHT))
    assert list(traces["broker 2"].y) == [3.0, 4.0, None, 4.0]
    assert list(traces["broker 2 failing"].y) == [5_000.0]
    assert traces["broker 1"].line.dash != traces["broker 2"].line.dash


def test_of_many_brokers_the_slowest_are_named() -> None:
    rows = tuple(BrokerTimeline(i, (float(i),) * 4, (float(i),) * 4, ()) for i in range(1, 31))
    figure = leader_lines(Brokers(STEPS, rows), QUIET, LIGHT)
    assert [trace.name for trace in figure.data if trace.showlegend] == [f"broker {i}" for i in range(23, 31)]


def test_the_worst_broker_is_told_by_its_row_and_bad_minutes_by_their_colour() -> None:
    figure = worst_homes(LINE, QUIET, LIGHT)
    (ticks,) = [trace for trace in figure.data if trace.mode == "markers"]
    assert set(ticks.y) == {"broker 1"}
    assert list(ticks.marker.line.color) == [LIGHT.good, LIGHT.good]


def test_skew_is_the_slowest_over_the_median() -> None:
    rows = tuple(BrokerTimeline(n, (ms,), (ms,), ()) for n, ms in ((1, 2.0), (2, 4.0), (3, 10.0)))
    assert Brokers(Grid(START, 1, 1), rows).skew == (2.5,)
    assert MAP.skew == (1.0, None, None, 4 / 3.5)
    drawn = _traces(skew(MAP, QUIET, LIGHT))
    assert list(drawn["scatter"].y) == list(MAP.skew)


@both_schemes
def test_what_was_taken_out_and_what_was_done_are_named_beside_findings(look: Theme) -> None:
    bands = tuple(Band(Span(minute(n), minute(n + 1)), what, what) for n, what in enumerate(What))
    figure = latency(LINE, replace(QUIET, bands=bands), look)
    texts = [note.text for note in figure.layout.annotations][1:]
    assert texts == ["▲ finding", "⊘ correction", "◆ action"]
    edges = {
        shape.line.dash for shape in figure.layout.shapes if shape.type == "line" and shape.x0 == shape.x1
    }
    assert edges == {"dot", "solid", "dash", "longdash"}


def test_hovering_tells_the_readers_time() -> None:
    berlin = replace(QUIET, times=Times("Europe/Berlin"))
    told = latency(LINE, berlin, LIGHT).data[0]
    assert told.customdata[0] == "Mon 02 Mar 2026 11:00 CET"
    cells = _traces(heatmap(MAP, Leg.CLIENT, 100.0, berlin, LIGHT))["heatmap"]
    assert cells.text[0][3] == "Mon 02 Mar 2026 11:03 CET"
    assert list(latency(LINE, berlin, LIGHT).layout.xaxis.ticktext) == [
        "11:00",
        "11:01",
        "11:02",
        "11:03",
        "11:04",
    ]


def test_a_week_divided_by_many_values_names_the_worst_eight() -> None:
    none = (None,)
    of = {
        f"v{n}": Trend(LATENCY, (WEEK,), none, none, (1_000.0 * n,), (3,), frozenset())
        for n in range(20, 0, -1)
    }
    figure = divided(LATENCY, of, LIGHT)
    assert len(figure.data) == 20
    assert {trace.name for trace in figure.data if trace.showlegend} == {f"v{n}" for n in range(13, 21)}
    assert len({trace.line.dash for trace in figure.data if trace.showlegend}) >= 6


def test_an_open_week_is_hollow() -> None:
    model = Trend(LATENCY, (WEEK,), (40_000.0,), (50_000.0,), (None,), (2,), frozenset({WEEK}))
    traces = _traces(trend(model, LIGHT))
    assert list(traces["median"].marker.symbol) == ["diamond-open"]
    assert (list(traces["p90"].y), list(traces["p99"].y)) == ([50.0], [None])


def test_figures_of_nothing_are_figures() -> None:
    nothing = Timeline(STEPS, (None,) * 4, None)
    empty = Brokers(STEPS, ())
    assert latency(nothing, QUIET, LIGHT).data
    assert availability(nothing, QUIET, LIGHT).data
    assert heatmap(empty, Leg.CLIENT, None, QUIET, LIGHT).data
    assert leader_lines(empty, QUIET, LIGHT).layout.xaxis.range


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(15, 150, [20, 50, 100]), (2, 20_000, [10, 100, 1000, 10_000])]
)
def test_ticks_are_round_and_do_not_crowd(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == ticks


@given(st.integers(0, 10**9))
def test_what_is_counted_has_whole_steps_and_few(most: int) -> None:
    axis = count_axis(most)
    assert axis["dtick"] == int(axis["dtick"]) >= 1
    assert most <= 4 * axis["dtick"] <= max(4, 10 * most)
    assert axis["visible"] == bool(most)


@pytest.mark.parametrize("count", [1, 10, 11, 35, 52])
def test_only_as_many_weeks_are_named_as_fit_and_the_newest_always(count: int) -> None:
    weeks = tuple(date(2026, 1, 5) + timedelta(days=7 * n) for n in range(count))
    none = (None,) * count
    axis = trend(Trend(LATENCY, weeks, none, none, none, (3,) * count, frozenset()), LIGHT).layout.xaxis
    assert len(axis.ticktext) <= 5
    assert axis.tickvals[0] == f"{weeks[-1]:%d %b %Y}"
    assert {f"{week:%d %b %Y}" for week in weeks} >= set(axis.tickvals)
