"""The fleet's quantiles by week: the headline chart."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import DASHES, SYMBOLS, Theme, blank, log_ms_axis
from fleetgauge_dashboards.units import count
from fleetgauge_dashboards.views.fleet import LATENCY, Trend, shown

#: More names of weeks than these do not fit side by side.
_NAMED_WEEKS = 5
#: Values of a segment with a colour and a name of their own.
VALUES_NAMED = 8
_LINES = (("p99", "solid"), ("p90", "dash"), ("median", "dot"))


HEIGHT = 220


def trend(model: Trend, look: Theme) -> go.Figure:
    """Three lines over the weeks; a week that is still open has hollow marks."""
    figure = blank(look, HEIGHT, model.metric)
    weeks = [_named(week) for week in model.weeks]
    for position, (quantile, dash) in enumerate(_LINES):
        values: tuple[float | None, ...] = getattr(model, quantile)
        colour = (look.bad, look.good, look.second)[position]
        figure.add_scatter(
            x=weeks,
            y=[_drawn(model.metric, value) for value in values],
            customdata=[shown(model.metric, value) for value in values],
            name=quantile,
            mode="lines+markers",
            connectgaps=False,
            # The solid line is the widest: where two are equal, the other shows inside it.
            line={"color": colour, "dash": dash, "width": 4 if dash == "solid" else 2},
            marker={
                "size": 10 if dash == "solid" else 7,
                "color": colour,
                "symbol": [
                    SYMBOLS[position] + ("-open" if week in model.open_weeks else "") for week in model.weeks
                ],
            },
            hovertext=[f"of {count(number, 'cluster')}" for number in model.clusters],
            hovertemplate=f"{quantile} %{{customdata}} %{{hovertext}}<extra></extra>",
        )
    _axes(figure, model.metric, model.weeks, [v for q, _ in _LINES for v in getattr(model, q)])
    return figure


def divided(metric: str, of: Mapping[str, Trend], look: Theme) -> go.Figure:
    """The p99 of each value of a segment; the worst ones are named, the rest is grey behind them."""
    figure = blank(look, HEIGHT, f"{metric} divided")
    named = list(of)[:VALUES_NAMED]
    weeks = sorted({week for model in of.values() for week in model.weeks})
    for value in reversed(list(of)):
        model, place = of[value], named.index(value) if value in named else None
        figure.add_scatter(
            x=[_named(week) for week in model.weeks],
            y=[_drawn(metric, p99) for p99 in model.p99],
            name=value,
            mode="lines" if place is None else "lines+markers",
            connectgaps=False,
            showlegend=place is not None,
            legendrank=1000 if place is None else place,
            line={
                "color": look.grid if place is None else look.series[place],
                "dash": "solid" if place is None else DASHES[place],
                "width": 1 if place is None else 2,
            },
            marker={"size": 6, "symbol": SYMBOLS[place or 0]},
            customdata=[shown(metric, p99) for p99 in model.p99],
            hovertext=[f"of {count(number, 'cluster')}" for number in model.clusters],
            hovertemplate="%{fullData.name} %{customdata} %{hovertext}<extra></extra>",
        )
    figure.update_layout(legend={"font": {"size": 11}, "itemwidth": 30})
    _axes(figure, metric, weeks, [p99 for model in of.values() for p99 in model.p99], _rows_of(named))
    return figure


def _rows_of(names: Sequence[str]) -> int:
    """Lines that a chart's names take in its narrowest place: three short ones, or one long."""
    return math.ceil(sum(6 * len(name) + 50 for name in names) / 280)


def _axes(
    figure: go.Figure,
    metric: str,
    weeks: Sequence[date],
    values: Sequence[float | None],
    rows_of_names: int = 1,
) -> None:
    figure.update_layout(margin={"r": 24, "t": 8 + 18 * rows_of_names})
    order = [_named(week) for week in weeks]
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=order, **_ticks(weeks))
    drawn = [one for value in values if (one := _drawn(metric, value)) is not None]
    if metric == LATENCY:
        log_ms_axis(figure, drawn)
    else:
        _percent_axis(figure, drawn)


def _named(week: date) -> str:
    return f"{week:%d %b %Y}"


def _ticks(weeks: Sequence[date]) -> dict[str, Any]:
    """The newest week is named, and from it back as many as fit."""
    named = weeks[:: -math.ceil(len(weeks) / _NAMED_WEEKS)] if weeks else ()
    return {
        "tickvals": [_named(week) for week in named],
        "ticktext": [f"{week:%d %b}" for week in named],
        "tickangle": 0,
    }


def _drawn(metric: str, value: float | None) -> float | None:
    """Milliseconds or percent."""
    if value is None:
        return None
    return value / 1000 if metric == LATENCY else 100 * value


def _percent_axis(figure: go.Figure, drawn: list[float]) -> None:
    """Up to 100% and no further; the low end is where the data is."""
    room = max(100 - min(drawn, default=99.9), 0.01)
    figure.update_yaxes(
        range=[100 - 1.15 * room, 100 + 0.08 * room], ticksuffix="%", nticks=5, hoverformat=".3f"
    )
