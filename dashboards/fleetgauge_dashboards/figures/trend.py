"""The fleet's quantiles by week: the headline chart."""

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import SYMBOLS, Theme, blank, log_ms_axis
from fleetgauge_dashboards.units import count
from fleetgauge_dashboards.views.fleet import LATENCY, Trend, shown

#: More names of weeks than these do not fit side by side.
_NAMED_WEEKS = 6
_LINES = (("p99", "solid"), ("p90", "dash"), ("median", "dot"))


def trend(model: Trend, look: Theme, height: int = 220) -> go.Figure:
    """Three lines over the weeks; a week that is still open has hollow marks."""
    figure = blank(look, height, model.metric)
    weeks = [f"{week:%d %b %Y}" for week in model.weeks]
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
    figure.update_layout(margin={"r": 24})
    figure.update_xaxes(type="category", **_ticks(model.weeks))
    drawn = [_drawn(model.metric, v) for q, _ in _LINES for v in getattr(model, q) if v is not None]
    if model.metric == LATENCY:
        log_ms_axis(figure, [value for value in drawn if value is not None])
    else:
        _percent_axis(figure, [value for value in drawn if value is not None])
    return figure


def _ticks(weeks: Sequence[date]) -> dict[str, Any]:
    """The newest week is named, and from it back as many as fit."""
    named = weeks[:: -math.ceil(len(weeks) / _NAMED_WEEKS)] if weeks else ()
    return {
        "tickvals": [f"{week:%d %b %Y}" for week in named],
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
