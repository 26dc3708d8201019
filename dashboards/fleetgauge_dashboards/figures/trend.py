"""Plot the fleet's quantiles by week."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import DASHES, SYMBOLS, Theme, new_figure, set_log_ms_axis
from fleetgauge_dashboards.units import format_count
from fleetgauge_dashboards.views.fleet import LATENCY, QuantileTrend, format_metric

#: The most week labels that fit side by side.
_NAMED_WEEKS = 5
#: Values of a segment with their own colour and legend entry; others are grey.
MAX_NAMED_VALUES = 8
_LINES = (("p99", "solid"), ("p90", "dash"), ("median", "dot"))


HEIGHT = 220


def plot_trend(model: QuantileTrend, theme: Theme) -> go.Figure:
    """Plot the three quantiles by week; an open week has hollow markers."""
    figure = new_figure(theme, HEIGHT, model.metric)
    weeks = [_week_label(week) for week in model.weeks]
    for position, (quantile, dash) in enumerate(_LINES):
        values: tuple[float | None, ...] = getattr(model, quantile)
        colour = (theme.bad, theme.good, theme.second)[position]
        figure.add_scatter(
            x=weeks,
            y=[_axis_value(model.metric, value) for value in values],
            customdata=[format_metric(model.metric, value) for value in values],
            name=quantile,
            mode="lines+markers",
            connectgaps=False,
            # The solid line is the widest: where two lines are equal, the other shows inside it.
            line={"color": colour, "dash": dash, "width": 4 if dash == "solid" else 2},
            marker={
                "size": 10 if dash == "solid" else 7,
                "color": colour,
                "symbol": [
                    SYMBOLS[position] + ("-open" if week in model.open_weeks else "") for week in model.weeks
                ],
            },
            hovertext=[f"of {format_count(number, 'cluster')}" for number in model.clusters],
            hovertemplate=f"{quantile} %{{customdata}} %{{hovertext}}<extra></extra>",
        )
    _axes(
        figure,
        model.metric,
        model.weeks,
        [value for quantile_name, _ in _LINES for value in getattr(model, quantile_name)],
    )
    return figure


def plot_segment_trends(metric: str, trends: Mapping[str, QuantileTrend], theme: Theme) -> go.Figure:
    """Plot the p99 of each value of a segment; the worst are named, the others are grey behind them."""
    figure = new_figure(theme, HEIGHT, f"{metric} divided")
    named_values = list(trends)[:MAX_NAMED_VALUES]
    weeks = sorted({week for model in trends.values() for week in model.weeks})
    for value in reversed(list(trends)):
        model, rank = trends[value], named_values.index(value) if value in named_values else None
        figure.add_scatter(
            x=[_week_label(week) for week in model.weeks],
            y=[_axis_value(metric, p99) for p99 in model.p99],
            name=value,
            mode="lines" if rank is None else "lines+markers",
            connectgaps=False,
            showlegend=rank is not None,
            legendrank=1000 if rank is None else rank,
            line={
                "color": theme.grid if rank is None else theme.series[rank],
                "dash": "solid" if rank is None else DASHES[rank],
                "width": 1 if rank is None else 2,
            },
            marker={"size": 6, "symbol": SYMBOLS[rank or 0]},
            customdata=[format_metric(metric, p99) for p99 in model.p99],
            hovertext=[f"of {format_count(number, 'cluster')}" for number in model.clusters],
            hovertemplate="%{fullData.name} %{customdata} %{hovertext}<extra></extra>",
        )
    figure.update_layout(legend={"font": {"size": 11}, "itemwidth": 30})
    _axes(
        figure,
        metric,
        weeks,
        [p99 for model in trends.values() for p99 in model.p99],
        _legend_rows(named_values),
    )
    return figure


def _legend_rows(names: Sequence[str]) -> int:
    """Return the rows of the legend at the narrowest page width."""
    return math.ceil(sum(6 * len(name) + 50 for name in names) / 280)


def _axes(
    figure: go.Figure,
    metric: str,
    weeks: Sequence[date],
    values: Sequence[float | None],
    rows_of_names: int = 1,
) -> None:
    figure.update_layout(margin={"r": 24, "t": 8 + 18 * rows_of_names})
    order = [_week_label(week) for week in weeks]
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=order, **_ticks(weeks))
    axis_values = [axis_value for value in values if (axis_value := _axis_value(metric, value)) is not None]
    if metric == LATENCY:
        set_log_ms_axis(figure, axis_values)
    else:
        _percent_axis(figure, axis_values)


def _week_label(week: date) -> str:
    return f"{week:%d %b %Y}"


def _ticks(weeks: Sequence[date]) -> dict[str, Any]:
    """Return the ticks: the newest week is labelled, and earlier ones as far as they fit."""
    labelled = weeks[:: -math.ceil(len(weeks) / _NAMED_WEEKS)] if weeks else ()
    return {
        "tickvals": [_week_label(week) for week in labelled],
        "ticktext": [f"{week:%d %b}" for week in labelled],
        "tickangle": 0,
    }


def _axis_value(metric: str, value: float | None) -> float | None:
    """Return the value in milliseconds or percent."""
    if value is None:
        return None
    return value / 1000 if metric == LATENCY else 100 * value


def _percent_axis(figure: go.Figure, axis_values: list[float]) -> None:
    """Set the y axis from the lowest value up to 100% and not above."""
    height = max(100 - min(axis_values, default=99.9), 0.01)
    figure.update_yaxes(
        range=[100 - 1.15 * height, 100 + 0.08 * height], ticksuffix="%", nticks=5, hoverformat=".3f"
    )
