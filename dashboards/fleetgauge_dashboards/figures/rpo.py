"""How far mirrors were behind: what may have been lost at most, and as tracers say."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.over_time import OverTime, draw_gaps, stamp, time_axis
from fleetgauge_dashboards.figures.theme import SYMBOLS, Theme, blank, literal
from fleetgauge_dashboards.units import seconds
from fleetgauge_dashboards.views.rpo import Rpo, RpoLine

HEIGHT = 260
#: Lines with a colour, a symbol and a name of their own; the rest is grey behind them.
NAMED = 8
_DASHED = "dashed: estimate, by tracers"
#: A row of names, in its narrowest place.
_ROW, _WIDTH = 24, 1_200
#: Symbols along a line: enough to tell it by, few enough to see it.
_SYMBOLS = 12
#: A log scale has no zero: what is less stands here.
LEAST_S = 1.0
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


def rpo(model: Rpo, over: OverTime, look: Theme) -> go.Figure:
    """Solid: at most. Thin and dashed: the estimate. A mirror's symbol says again what its colour says."""
    furthest = sorted(model.lines, key=lambda one: (-one.peak, one.name))[:NAMED]
    named = sorted(one.name for one in furthest)
    rows = _rows_of(named)
    figure = blank(look, HEIGHT + _ROW * (rows - 1), over.revision)
    figure.update_layout(margin={"t": 2 + _ROW * rows})
    at = [stamp(step) for step in model.grid.at]
    for line in sorted(model.lines, key=lambda one: one.name in named):
        _draw(figure, line, at, named.index(line.name) if line.name in named else None, look)
    if any(one is not None for line in model.lines for one in line.estimate):
        dashed = {"color": look.faint, "dash": "dash", "width": 1.2}
        figure.add_scatter(x=[None], y=[None], mode="lines", name=_DASHED, line=dashed)
    time_axis(figure, look, over, model.grid.at)
    _seconds_axis(figure, model)
    if model.objective_s is not None:
        _objective(figure, model.objective_s, look)
    draw_gaps(figure, model.gaps, look)
    return figure


def _rows_of(names: Sequence[str]) -> int:
    """Lines that a chart's names take, with two more: one, or each has the room of the widest."""
    wide = [40 + 6.3 * len(name) for name in (*names, _DASHED, "not measured")]
    return 1 if sum(wide) <= _WIDTH else math.ceil(len(wide) / max(1, _WIDTH // max(wide)))


def _draw(figure: go.Figure, line: RpoLine, at: list[str], place: int | None, look: Theme) -> None:
    colour, name = look.grid if place is None else look.series[place], literal(line.name)
    figure.add_scatter(
        x=at,
        y=[_drawn(one) for one in line.at_most],
        name=name,
        legendgroup=name,
        showlegend=place is not None,
        mode="lines" if place is None else "lines+markers",
        connectgaps=False,
        line={"color": colour, "width": 1 if place is None else 2, "shape": "hv"},
        marker={"symbol": SYMBOLS[place or 0], "size": 8, "maxdisplayed": _SYMBOLS},
        customdata=[seconds(one) for one in line.at_most],
        hovertemplate="%{fullData.name} at most %{customdata}<extra></extra>",
    )
    if place is None or all(one is None for one in line.estimate):
        return
    figure.add_scatter(
        x=at,
        y=[_drawn(one) for one in line.estimate],
        name=f"{name}, estimate",
        legendgroup=name,
        showlegend=False,
        mode="lines",
        connectgaps=False,
        line={"color": colour, "width": 1.2, "dash": "dash", "shape": "hv"},
        customdata=[seconds(one) for one in line.estimate],
        hovertemplate="%{fullData.name} %{customdata}<extra></extra>",
    )


def _drawn(value: float | None) -> float | None:
    return None if value is None else max(value, LEAST_S)


def _seconds_axis(figure: go.Figure, model: Rpo) -> None:
    """From the least on, as far up as anything or the objective is."""
    highest = max([60.0, model.objective_s or 0, *(line.peak for line in model.lines)]) * 1.6
    figure.update_yaxes(
        type="log",
        range=[math.log10(LEAST_S / 1.15), math.log10(highest)],
        tickvals=[at for at, _ in _TICKS if at <= highest],
        ticktext=[words for at, words in _TICKS if at <= highest],
    )


def _objective(figure: go.Figure, objective_s: float, look: Theme) -> None:
    figure.add_hline(y=objective_s, line={"color": look.text, "dash": "dashdot", "width": 1.2})
    # Plotly wants the logarithm here and the value there.
    figure.add_annotation(
        x=1,
        xref="paper",
        y=math.log10(objective_s),
        text=f"objective<br>{seconds(objective_s)}",
        showarrow=False,
        xanchor="left",
        align="left",
        font={"size": 11, "color": look.text},
    )
