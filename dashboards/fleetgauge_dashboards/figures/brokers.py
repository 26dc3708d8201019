"""Plot brokers by minute: a heatmap of one leg, the leader leg's latency, and the skew."""

import math

import plotly.graph_objects as go

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.figures.theme import (
    DASHES,
    Theme,
    compute_log_ticks,
    new_figure,
    set_log_ms_axis,
    show_note,
)
from fleetgauge_dashboards.figures.time_series import (
    ChartContext,
    draw_bands,
    draw_hatching,
    format_plotly_time,
    set_time_axis,
)
from fleetgauge_dashboards.units import format_milliseconds
from fleetgauge_dashboards.views.bands import BandKind
from fleetgauge_dashboards.views.minutes import BrokerTimeline, BrokerTimelines

#: The colour scale in ms; it is the same for every cluster and span, so that colours are comparable.
LOWEST_MS, HIGHEST_MS = 1.0, 10_000.0
#: Lines with their own colour and legend entry; the others are grey behind them.
MAX_NAMED_BROKERS = 8


def plot_heatmap(
    model: BrokerTimelines, leg: Leg, objective_ms: float | None, context: ChartContext, theme: Theme
) -> go.Figure:
    """Plot a row for each broker: pale up to the objective, strong above it, hatched where not measured."""
    figure = new_figure(theme, 54 + 30 * max(len(model.brokers), 1), context.revision)
    names = [f"broker {row.broker_id}" for row in model.brokers]
    cells = [row.latency_p99_censored_ms for row in model.brokers]
    # Plotly centres a cell on its x coordinate.
    middles = [format_plotly_time(at + model.grid.step / 2) for at in model.grid.step_starts]
    figure.add_heatmap(
        x=middles,
        y=names,
        z=[
            [None if ms is None else math.log10(min(max(ms, LOWEST_MS), HIGHEST_MS)) for ms in row]
            for row in cells
        ],
        text=[[context.times.format_long_minute(at) for at in model.grid.step_starts]] * len(cells),
        customdata=[[format_milliseconds(None if ms is None else 1000 * ms) for ms in row] for row in cells],
        zmin=math.log10(LOWEST_MS),
        zmax=math.log10(HIGHEST_MS),
        colorscale=_scale(objective_ms or 100.0, theme),
        colorbar=_colorbar(theme),
        xgap=1 if model.grid.size <= 60 else 0,
        ygap=2,
        hovertemplate=f"%{{y}}, {leg} leg<br>%{{text}}<br>p99 %{{customdata}}<extra></extra>",
        hoverongaps=False,
        showlegend=False,
    )
    _mark_over(figure, model, names, objective_ms, theme)
    gaps = [(gap, name) for row, name in zip(model.brokers, names, strict=True) for gap in row.gaps]
    draw_hatching(figure, tuple(gap for gap, _ in gaps), tuple(name for _, name in gaps), 0.92, theme)
    for band in context.bands:
        if band.kind is BandKind.FINDING:
            figure.add_vline(x=format_plotly_time(band.span.start), line={"color": theme.bad, "width": 2})
    set_time_axis(figure, theme, context)
    figure.update_layout(hovermode="closest", barmode="overlay")
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, fixedrange=True)
    _note_if_empty(figure, model, theme)
    return figure


def _note_if_empty(figure: go.Figure, model: BrokerTimelines, theme: Theme) -> None:
    if not model.brokers:
        show_note(figure, theme, "No broker-minutes are stored for this time.")
        figure.update_yaxes(visible=False)


def _mark_over(
    figure: go.Figure, model: BrokerTimelines, names: list[str], objective_ms: float | None, theme: Theme
) -> None:
    """Mark each cell over the objective, where cells are wide enough for a marker."""
    if objective_ms is None or model.grid.size > 120:
        return
    cells = [
        (at + model.grid.step / 2, name)
        for row, name in zip(model.brokers, names, strict=True)
        for at, ms in zip(model.grid.step_starts, row.latency_p99_censored_ms, strict=True)
        if ms is not None and ms > objective_ms
    ]
    if cells:
        figure.add_scatter(
            x=[format_plotly_time(at) for at, _ in cells],
            y=[name for _, name in cells],
            name=f"over {format_milliseconds(1000 * objective_ms)}",
            mode="markers",
            marker={
                "symbol": "triangle-up",
                "size": 8,
                "color": theme.panel,
                "line": {"width": 1, "color": theme.text},
            },
            hoverinfo="skip",
        )


def _scale(objective_ms: float, theme: Theme) -> list[tuple[float, str]]:
    """Return two colour ramps that meet at the objective without blending."""
    width = math.log10(HIGHEST_MS) - math.log10(LOWEST_MS)
    boundary = min(max((math.log10(objective_ms) - math.log10(LOWEST_MS)) / width, 0.05), 0.95)
    return [
        (0.0, theme.under[0]),
        (boundary, theme.under[1]),
        (boundary, theme.over[0]),
        (1.0, theme.over[1]),
    ]


def _colorbar(theme: Theme) -> dict[str, object]:
    ticks = compute_log_ticks(LOWEST_MS, HIGHEST_MS)
    return {
        "tickvals": [math.log10(tick) for tick in ticks],
        "ticktext": ["≤ 1 ms", "10 ms", "100 ms", "1,000 ms", "≥ 10,000 ms"],
        "thickness": 10,
        "len": 1.0,
        "x": 1.005,
        "outlinewidth": 0,
        "tickfont": {"size": 10, "color": theme.faint},
    }


def plot_leader_latency(model: BrokerTimelines, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot each broker's own p99; the slowest are named, each with its colour and dash."""
    figure = new_figure(theme, 230, context.revision)
    at = [format_plotly_time(time) for time in model.grid.step_starts]
    peak = {
        row.broker_id: max((ms for ms in row.latency_p99_ms if ms is not None), default=0.0)
        for row in model.brokers
    }
    named_brokers = sorted(sorted(peak, key=lambda broker: (-peak[broker], broker))[:MAX_NAMED_BROKERS])
    for row in sorted(model.brokers, key=lambda row: row.broker_id in named_brokers):
        rank = named_brokers.index(row.broker_id) if row.broker_id in named_brokers else None
        figure.add_scatter(
            x=at,
            y=row.latency_p99_ms,
            name=f"broker {row.broker_id}",
            mode="lines",
            showlegend=rank is not None,
            line={
                "color": theme.grid if rank is None else theme.series[rank],
                "dash": "solid" if rank is None else DASHES[rank],
                "width": 1 if rank is None else 2,
            },
            customdata=[format_milliseconds(None if ms is None else 1000 * ms) for ms in row.latency_p99_ms],
            hovertemplate=f"broker {row.broker_id} %{{customdata}}<extra></extra>",
        )
        _mark_failures(figure, model, row, theme.faint if rank is None else theme.series[rank])
    set_time_axis(figure, theme, context, model.grid.step_starts)
    set_log_ms_axis(figure, [ms for row in model.brokers for ms in _drawn(row)])
    _note_if_empty(figure, model, theme)
    draw_bands(figure, context, theme)
    return figure


def _mark_failures(figure: go.Figure, model: BrokerTimelines, row: BrokerTimeline, colour: str) -> None:
    """Mark with a cross at the deadline where failures decide the p99, since a line would not show them."""
    failed = [
        (at, ms)
        for at, ms, p99 in zip(
            model.grid.step_starts, row.latency_p99_censored_ms, row.latency_p99_ms, strict=True
        )
        if ms is not None and ms != p99
    ]
    if failed:
        figure.add_scatter(
            x=[format_plotly_time(at) for at, _ in failed],
            y=[ms for _, ms in failed],
            name=f"broker {row.broker_id} failing",
            mode="markers",
            marker={"symbol": "x", "size": 8, "color": colour},
            customdata=[format_milliseconds(1000 * ms) for _, ms in failed],
            hovertemplate=f"broker {row.broker_id} fails: counted at %{{customdata}}<extra></extra>",
        )


def _drawn(row: BrokerTimeline) -> list[float]:
    return [ms for ms in (*row.latency_p99_ms, *row.latency_p99_censored_ms) if ms is not None]


SKEW_HEIGHT = 130


def plot_skew(model: BrokerTimelines, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the slowest broker's p99 over the median broker's; 1 is even."""
    figure = new_figure(theme, SKEW_HEIGHT, context.revision)
    values = model.skew
    figure.add_scatter(
        x=[format_plotly_time(at) for at in model.grid.step_starts],
        y=list(values),
        mode="lines",
        line={"color": theme.good, "width": 2},
        showlegend=False,
        customdata=["" if ratio is None else f"{ratio:.2f}" for ratio in values],
        hovertemplate="slowest over median %{customdata}<extra></extra>",
    )
    set_time_axis(figure, theme, context, model.grid.step_starts)
    ratios = [ratio for ratio in values if ratio is not None]
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(range=[0.95, max([1.5, *ratios]) * 1.05], nticks=4, tickformat=".1f")
    _note_if_empty(figure, model, theme)
    draw_bands(figure, context, theme)
    return figure
