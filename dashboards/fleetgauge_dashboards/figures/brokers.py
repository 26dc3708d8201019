"""Broker by minute: a map of one leg, and the leader leg's lines."""

import math

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.over_time import OverTime, draw_bands, hatch, stamp, time_axis
from fleetgauge_dashboards.figures.theme import DASHES, Theme, blank, log_ms_axis, log_ticks, say
from fleetgauge_dashboards.links import Leg
from fleetgauge_dashboards.units import milliseconds
from fleetgauge_dashboards.views.bands import What
from fleetgauge_dashboards.views.minutes import Brokers, BrokerTimeline

#: The scale is the same in every cluster and hour, so that a colour keeps its meaning.
LOWEST_MS, HIGHEST_MS = 1.0, 10_000.0
#: Lines with a colour and a name of their own; the rest is grey behind them.
NAMED = 8


def heatmap(model: Brokers, leg: Leg, objective_ms: float | None, over: OverTime, look: Theme) -> go.Figure:
    """One row a broker: quiet up to the objective, loud beyond it, hatched where not measured."""
    figure = blank(look, 54 + 30 * max(len(model.brokers), 1), over.revision)
    names = [f"broker {row.broker_id}" for row in model.brokers]
    cells = [row.latency_p99_censored_ms for row in model.brokers]
    # A cell's x is its middle: plotly centres cells on their coordinate.
    middles = [stamp(at + model.grid.step / 2) for at in model.grid.at]
    figure.add_heatmap(
        x=middles,
        y=names,
        z=[
            [None if ms is None else math.log10(min(max(ms, LOWEST_MS), HIGHEST_MS)) for ms in row]
            for row in cells
        ],
        text=[[over.times.named_minute(at) for at in model.grid.at]] * len(cells),
        customdata=[[milliseconds(None if ms is None else 1000 * ms) for ms in row] for row in cells],
        zmin=math.log10(LOWEST_MS),
        zmax=math.log10(HIGHEST_MS),
        colorscale=_scale(objective_ms or 100.0, look),
        colorbar=_colorbar(look),
        xgap=1 if model.grid.size <= 60 else 0,
        ygap=2,
        hovertemplate=f"%{{y}}, {leg} leg<br>%{{text}}<br>p99 %{{customdata}}<extra></extra>",
        hoverongaps=False,
        showlegend=False,
    )
    _mark_over(figure, model, names, objective_ms, look)
    gaps = [(gap, name) for row, name in zip(model.brokers, names, strict=True) for gap in row.gaps]
    hatch(figure, tuple(gap for gap, _ in gaps), tuple(name for _, name in gaps), 0.92, look)
    for band in over.bands:
        if band.what is What.FINDING:
            figure.add_vline(x=stamp(band.span.start), line={"color": look.bad, "width": 2})
    time_axis(figure, look, over)
    figure.update_layout(hovermode="closest", barmode="overlay")
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, fixedrange=True)
    _say_if_none(figure, model, look)
    return figure


def _say_if_none(figure: go.Figure, model: Brokers, look: Theme) -> None:
    if not model.brokers:
        say(figure, look, "No broker's minute is held of this time.")
        figure.update_yaxes(visible=False)


def _mark_over(
    figure: go.Figure, model: Brokers, names: list[str], objective_ms: float | None, look: Theme
) -> None:
    """A mark in each cell over the objective, where cells are wide enough to hold one."""
    if objective_ms is None or model.grid.size > 120:
        return
    over = [
        (at + model.grid.step / 2, name)
        for row, name in zip(model.brokers, names, strict=True)
        for at, ms in zip(model.grid.at, row.latency_p99_censored_ms, strict=True)
        if ms is not None and ms > objective_ms
    ]
    if over:
        figure.add_scatter(
            x=[stamp(at) for at, _ in over],
            y=[name for _, name in over],
            name=f"over {milliseconds(1000 * objective_ms)}",
            mode="markers",
            marker={
                "symbol": "triangle-up",
                "size": 8,
                "color": look.panel,
                "line": {"width": 1, "color": look.text},
            },
            hoverinfo="skip",
        )


def _scale(objective_ms: float, look: Theme) -> list[tuple[float, str]]:
    """Two ramps that meet at the objective, without a blend between them."""
    width = math.log10(HIGHEST_MS) - math.log10(LOWEST_MS)
    meet = min(max((math.log10(objective_ms) - math.log10(LOWEST_MS)) / width, 0.05), 0.95)
    return [(0.0, look.under[0]), (meet, look.under[1]), (meet, look.over[0]), (1.0, look.over[1])]


def _colorbar(look: Theme) -> dict[str, object]:
    ticks = log_ticks(LOWEST_MS, HIGHEST_MS)
    return {
        "tickvals": [math.log10(tick) for tick in ticks],
        "ticktext": ["≤ 1 ms", "10 ms", "100 ms", "1,000 ms", "≥ 10,000 ms"],
        "thickness": 10,
        "len": 1.0,
        "x": 1.005,
        "outlinewidth": 0,
        "tickfont": {"size": 10, "color": look.faint},
    }


def leader_lines(model: Brokers, over: OverTime, look: Theme) -> go.Figure:
    """Each broker's own p99; the slowest ones are named, each with its colour and dash."""
    figure = blank(look, 230, over.revision)
    at = [stamp(time) for time in model.grid.at]
    peak = {
        row.broker_id: max((ms for ms in row.latency_p99_ms if ms is not None), default=0.0)
        for row in model.brokers
    }
    named = sorted(sorted(peak, key=lambda broker: (-peak[broker], broker))[:NAMED])
    for row in sorted(model.brokers, key=lambda row: row.broker_id in named):
        place = named.index(row.broker_id) if row.broker_id in named else None
        figure.add_scatter(
            x=at,
            y=row.latency_p99_ms,
            name=f"broker {row.broker_id}",
            mode="lines",
            showlegend=place is not None,
            line={
                "color": look.grid if place is None else look.series[place],
                "dash": "solid" if place is None else DASHES[place],
                "width": 1 if place is None else 2,
            },
            customdata=[milliseconds(None if ms is None else 1000 * ms) for ms in row.latency_p99_ms],
            hovertemplate=f"broker {row.broker_id} %{{customdata}}<extra></extra>",
        )
        _mark_failures(figure, model, row, look.faint if place is None else look.series[place])
    time_axis(figure, look, over, model.grid.at)
    log_ms_axis(figure, [ms for row in model.brokers for ms in _drawn(row)])
    _say_if_none(figure, model, look)
    draw_bands(figure, over, look)
    return figure


def _mark_failures(figure: go.Figure, model: Brokers, row: BrokerTimeline, colour: str) -> None:
    """A cross at the deadline where so many probes failed that they are the p99: no line may hide it."""
    failed = [
        (at, ms)
        for at, ms, p99 in zip(model.grid.at, row.latency_p99_censored_ms, row.latency_p99_ms, strict=True)
        if ms is not None and ms != p99
    ]
    if failed:
        figure.add_scatter(
            x=[stamp(at) for at, _ in failed],
            y=[ms for _, ms in failed],
            name=f"broker {row.broker_id} failing",
            mode="markers",
            marker={"symbol": "x", "size": 8, "color": colour},
            customdata=[milliseconds(1000 * ms) for _, ms in failed],
            hovertemplate=f"broker {row.broker_id} fails, counted as %{{customdata}}<extra></extra>",
        )


def _drawn(row: BrokerTimeline) -> list[float]:
    return [ms for ms in (*row.latency_p99_ms, *row.latency_p99_censored_ms) if ms is not None]


SKEW_HEIGHT = 130


def skew(model: Brokers, over: OverTime, look: Theme) -> go.Figure:
    """How far the slowest broker is from the median one; 1 is even."""
    figure = blank(look, SKEW_HEIGHT, over.revision)
    values = model.skew
    figure.add_scatter(
        x=[stamp(at) for at in model.grid.at],
        y=list(values),
        mode="lines",
        line={"color": look.good, "width": 2},
        showlegend=False,
        customdata=["" if one is None else f"{one:.2f}" for one in values],
        hovertemplate="slowest over median %{customdata}<extra></extra>",
    )
    time_axis(figure, look, over, model.grid.at)
    known = [one for one in values if one is not None]
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(range=[0.95, max([1.5, *known]) * 1.05], nticks=4, tickformat=".1f")
    _say_if_none(figure, model, look)
    draw_bands(figure, over, look)
    return figure
