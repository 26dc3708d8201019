"""Plot one broker: the latency of its legs, and its failed probes."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import (
    PATTERNS,
    Theme,
    build_count_axis,
    new_figure,
    set_log_ms_axis,
    show_note,
)
from fleetgauge_dashboards.figures.time_series import (
    ChartContext,
    draw_bands,
    draw_gaps,
    format_plotly_time,
    set_time_axis,
)
from fleetgauge_dashboards.units import format_milliseconds
from fleetgauge_dashboards.views.broker import BrokerDetail, LegTimeline
from fleetgauge_dashboards.views.minutes import TimeGrid

LATENCY_HEIGHT = 220
FAILURES_HEIGHT = 170


def plot_leg_latency(model: LegTimeline, grid: TimeGrid, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the median and p99 of the successes, and the p99 with failures."""
    figure = new_figure(theme, LATENCY_HEIGHT, context.revision)
    at = [format_plotly_time(time) for time in grid.step_starts]
    lines: Sequence[tuple[str, tuple[float | None, ...], str, str]] = (
        ("with failures", model.p99_censored_ms, theme.bad, "dot"),
        ("p99 of successes", model.p99_ms, theme.good, "solid"),
        ("median", model.p50_ms, theme.second, "dash"),
    )
    for name, values, colour, dash in lines:
        figure.add_scatter(
            x=at,
            y=values,
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash, "width": 2},
            customdata=[format_milliseconds(None if ms is None else 1000 * ms) for ms in values],
            hovertemplate=f"{name} %{{customdata}}<extra></extra>",
        )
    set_time_axis(figure, theme, context, grid.step_starts)
    set_log_ms_axis(figure, [ms for _, values, *_ in lines for ms in values if ms is not None])
    draw_gaps(figure, model.gaps, theme)
    draw_bands(figure, context, theme)
    return figure


def plot_failures(model: BrokerDetail, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the failed probes of each step, stacked by leg and reason."""
    figure = new_figure(theme, FAILURES_HEIGHT, context.revision)
    middles = [format_plotly_time(at + model.grid.step / 2) for at in model.grid.step_starts]
    codes = [(leg.leg, code, counts) for leg in model.legs for code, counts in leg.failures.items()]
    for index, (leg, code, counts) in enumerate(codes):
        figure.add_bar(
            x=middles,
            y=list(counts),
            width=60_000 * model.grid.step_min,
            name=f"{leg}: {code}",
            marker={
                "color": theme.series[index % len(theme.series)],
                "line": {"width": 0},
                "pattern": {"shape": PATTERNS[index % len(PATTERNS)], "size": 5, "solidity": 0.3},
            },
            hovertemplate=f"{leg}, {code}: %{{y:,}}<extra></extra>",
        )
    set_time_axis(figure, theme, context, model.grid.step_starts)
    figure.update_layout(barmode="stack")
    most = max(map(sum, zip(*(counts for *_, counts in codes), strict=True)), default=0)
    figure.update_yaxes(**build_count_axis(most))
    if not codes:
        show_note(figure, theme, "No failed probes.")
    draw_bands(figure, context, theme)
    return figure
