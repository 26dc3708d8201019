"""Plot the replication lag of mirrors: the upper bound and the estimate by tracers."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import SYMBOLS, Theme, escape_markup, new_figure
from fleetgauge_dashboards.figures.time_series import (
    ChartContext,
    draw_gaps,
    format_plotly_time,
    set_time_axis,
)
from fleetgauge_dashboards.units import format_seconds
from fleetgauge_dashboards.views.rpo import RpoTimeline, RpoTimelines

HEIGHT = 260
#: Lines with their own colour, symbol and legend entry; the others are grey behind them.
MAX_NAMED_MIRRORS = 8
_DASHED = "dashed: estimate, by tracers"
#: The height of a legend row and its narrowest width, in pixels.
_ROW, _WIDTH = 24, 1_200
#: The most symbols along a line.
_SYMBOLS = 12
#: A log scale has no zero: smaller values are drawn here.
MIN_DRAWN_S = 1.0
_TICKS = (
    (1, "≤ 1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3_600, "1 h"),
    (36_000, "10 h"),
    (86_400, "1 d"),
    (864_000, "10 d"),
)


def plot_rpo(model: RpoTimelines, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the upper bound solid and the estimate thin and dashed.

    A mirror's symbol repeats what its colour says.
    """
    largest = sorted(model.lines, key=lambda line: (-line.peak, line.name))[:MAX_NAMED_MIRRORS]
    named_mirrors = sorted(line.name for line in largest)
    rows = _legend_rows(named_mirrors)
    figure = new_figure(theme, HEIGHT + _ROW * (rows - 1), context.revision)
    figure.update_layout(margin={"t": 2 + _ROW * rows})
    at = [format_plotly_time(step) for step in model.grid.step_starts]
    for line in sorted(model.lines, key=lambda line: line.name in named_mirrors):
        _draw(figure, line, at, named_mirrors.index(line.name) if line.name in named_mirrors else None, theme)
    if any(value is not None for line in model.lines for value in line.estimate):
        line_style = {"color": theme.faint, "dash": "dash", "width": 1.2}
        figure.add_scatter(x=[None], y=[None], mode="lines", name=_DASHED, line=line_style)
    set_time_axis(figure, theme, context, model.grid.step_starts)
    _seconds_axis(figure, model)
    if model.objective_s is not None:
        _objective(figure, model.objective_s, theme)
    draw_gaps(figure, model.gaps, theme)
    return figure


def _legend_rows(names: Sequence[str]) -> int:
    """Return the legend's rows: all names in one row, or else columns as wide as the widest name."""
    widths = [40 + 6.3 * len(name) for name in (*names, _DASHED, "not measured")]
    return 1 if sum(widths) <= _WIDTH else math.ceil(len(widths) / max(1, _WIDTH // max(widths)))


def _draw(figure: go.Figure, line: RpoTimeline, at: list[str], index: int | None, theme: Theme) -> None:
    colour, name = theme.grid if index is None else theme.series[index], escape_markup(line.name)
    figure.add_scatter(
        x=at,
        y=[_drawn(value) for value in line.at_most],
        name=name,
        legendgroup=name,
        showlegend=index is not None,
        mode="lines" if index is None else "lines+markers",
        connectgaps=False,
        line={"color": colour, "width": 1 if index is None else 2, "shape": "hv"},
        marker={"symbol": SYMBOLS[index or 0], "size": 8, "maxdisplayed": _SYMBOLS},
        customdata=[format_seconds(value) for value in line.at_most],
        hovertemplate="%{fullData.name} at most %{customdata}<extra></extra>",
    )
    if index is None or all(value is None for value in line.estimate):
        return
    figure.add_scatter(
        x=at,
        y=[_drawn(value) for value in line.estimate],
        name=f"{name}, estimate",
        legendgroup=name,
        showlegend=False,
        mode="lines",
        connectgaps=False,
        line={"color": colour, "width": 1.2, "dash": "dash", "shape": "hv"},
        customdata=[format_seconds(value) for value in line.estimate],
        hovertemplate="%{fullData.name} %{customdata}<extra></extra>",
    )


def _drawn(value: float | None) -> float | None:
    return None if value is None else max(value, MIN_DRAWN_S)


def _seconds_axis(figure: go.Figure, model: RpoTimelines) -> None:
    """Set the log axis from the smallest drawn value up to the largest value or the objective."""
    highest = max([60.0, model.objective_s or 0, *(line.peak for line in model.lines)]) * 1.6
    figure.update_yaxes(
        type="log",
        range=[math.log10(MIN_DRAWN_S / 1.15), math.log10(highest)],
        tickvals=[seconds for seconds, _ in _TICKS if seconds <= highest],
        ticktext=[label for seconds, label in _TICKS if seconds <= highest],
    )


def _objective(figure: go.Figure, objective_s: float, theme: Theme) -> None:
    figure.add_hline(y=objective_s, line={"color": theme.text, "dash": "dashdot", "width": 1.2})
    # An annotation on a log axis takes the logarithm, a line takes the value.
    figure.add_annotation(
        x=1,
        xref="paper",
        y=math.log10(objective_s),
        text=f"objective<br>{format_seconds(objective_s)}",
        showarrow=False,
        xanchor="left",
        align="left",
        font={"size": 11, "color": theme.text},
    )
