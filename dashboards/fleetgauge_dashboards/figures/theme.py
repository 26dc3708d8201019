"""Colours and axes that all figures share.

The hues follow Okabe and Ito and are told apart by colour-blind readers; a dash, a
symbol or a hatch says the same thing again without colour.
"""

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.units import milliseconds

#: Room left and right of every time axis, so that minutes stand under minutes.
LEFT, RIGHT = 74, 92
#: The highest over the lowest value of a log axis, at the least.
LEAST_RATIO = 10.0


@dataclass(frozen=True, slots=True)
class Theme:
    """One colour scheme."""

    name: str
    text: str
    faint: str
    grid: str
    panel: str
    good: str
    second: str
    third: str
    bad: str
    warn: str
    series: tuple[str, ...]
    #: From quiet to the objective, and from there on up.
    under: tuple[str, str]
    over: tuple[str, str]


LIGHT = Theme(
    name="light",
    text="#1b2733",
    faint="#5b6b7a",
    grid="rgba(90,110,130,0.18)",
    panel="#ffffff",
    good="#0072B2",
    second="#009E73",
    third="#B5568A",
    bad="#C44A00",
    warn="#9a6a00",
    series=("#0072B2", "#D55E00", "#009E73", "#B5568A", "#9a6a00", "#3E9BD6", "#6b4fa0", "#5b6b7a"),
    under=("#e6f0f8", "#5a9bc8"),
    over=("#f2a34a", "#9c1f00"),
)
DARK = Theme(
    name="dark",
    text="#e3e8ee",
    faint="#9aa7b4",
    grid="rgba(160,180,200,0.16)",
    panel="#1c2127",
    good="#56B4E9",
    second="#2cc79a",
    third="#e39bc4",
    bad="#ff8a4c",
    warn="#E6B422",
    series=("#56B4E9", "#ff8a4c", "#2cc79a", "#e39bc4", "#E6B422", "#9ad1f5", "#b8a2ea", "#9aa7b4"),
    under=("#1f3443", "#4793c4"),
    over=("#f0a040", "#ff5a36"),
)

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
PATTERNS = ("", "/", "x", "-", "\\", ".", "|", "+")
SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")


def theme(scheme: str | None) -> Theme:
    return DARK if scheme == "dark" else LIGHT


def literal(name: str) -> str:
    """Plotly reads markup in its words, and a name is none."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def blank(look: Theme, height: int, revision: str) -> go.Figure:
    """An empty figure; zoom and hidden lines last as long as the revision."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        uirevision=revision,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": look.text},
        # Without autoexpand: margins are the same on every chart, or minutes would not align.
        margin={"l": LEFT, "r": RIGHT, "t": 26, "b": 24, "autoexpand": False},
        hovermode="x unified",
        hoverlabel={"bgcolor": look.panel, "bordercolor": look.grid, "font": {"color": look.text}},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"},
        showlegend=True,
        dragmode="zoom",
    )
    figure.update_xaxes(gridcolor=look.grid, zeroline=False, tickfont={"color": look.faint})
    figure.update_yaxes(gridcolor=look.grid, zeroline=False, tickfont={"color": look.faint})
    return figure


def say(figure: go.Figure, look: Theme, words: str) -> None:
    """In the middle of a figure that has nothing to draw."""
    middle = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    figure.add_annotation(text=words, showarrow=False, font={"color": look.faint}, **middle)


def log_ms_axis(figure: go.Figure, values: list[float]) -> None:
    """A log axis in ms around the values."""
    positive = [value for value in values if value > 0] or [1.0, 100.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    # At least a decade, so that noise of a few ms looks like noise.
    room = max(1.0, math.sqrt(LEAST_RATIO / (high / low)))
    low, high = low / room, high * room
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=(ticks := log_ticks(low, high)),
        ticktext=[milliseconds(1000 * tick).replace(".00", "").replace(".0 ", " ") for tick in ticks],
    )


def count_axis(most: int) -> dict[str, Any]:
    """Whole numbers from zero, in four steps at the most; with nothing counted there is no axis."""
    steps = (step * 10**decade for decade in count() for step in (1, 2, 5))
    return {
        "rangemode": "tozero",
        "dtick": next(step for step in steps if 4 * step >= most),
        "tickformat": ",d",
        "visible": most > 0,
    }


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two bounds: decades alone where 1, 2 and 5 would crowd."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low <= 300 else (1,)
    return [float(s * 10.0**d) for d in decades for s in steps if low <= s * 10.0**d <= high]
