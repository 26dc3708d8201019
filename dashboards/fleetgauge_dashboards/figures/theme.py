"""Colours and axes that all figures share.

The hues follow Okabe and Ito and can be distinguished by colour-blind readers; a dash, a symbol or a hatch
repeats the same information without colour.
"""

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.units import format_milliseconds

#: Margins in pixels of every time axis, equal so that the minutes of all charts align.
MARGIN_LEFT, MARGIN_RIGHT = 74, 92
#: The smallest ratio of highest to lowest value on a log axis.
MIN_AXIS_RATIO = 10.0


@dataclass(frozen=True, slots=True)
class Theme:
    """A colour scheme."""

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
    #: The colour ramps of values up to the objective, and above it.
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


def select_theme(scheme: str | None) -> Theme:
    """Return the theme of a colour scheme; light by default."""
    return DARK if scheme == "dark" else LIGHT


def escape_markup(name: str) -> str:
    """Return the name with its markup escaped, because Plotly interprets markup in texts."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def new_figure(theme: Theme, height: int, revision: str) -> go.Figure:
    """Return an empty figure; zoom and hidden lines last while ``revision`` is the same."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        uirevision=revision,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": theme.text},
        # No autoexpand: margins must be equal on every chart, or the minutes would not align.
        margin={"l": MARGIN_LEFT, "r": MARGIN_RIGHT, "t": 26, "b": 24, "autoexpand": False},
        hovermode="x unified",
        hoverlabel={"bgcolor": theme.panel, "bordercolor": theme.grid, "font": {"color": theme.text}},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"},
        showlegend=True,
        dragmode="zoom",
    )
    figure.update_xaxes(gridcolor=theme.grid, zeroline=False, tickfont={"color": theme.faint})
    figure.update_yaxes(gridcolor=theme.grid, zeroline=False, tickfont={"color": theme.faint})
    return figure


def show_note(figure: go.Figure, theme: Theme, text: str) -> None:
    """Show a text in the middle of a figure that has nothing to draw."""
    center = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    figure.add_annotation(text=text, showarrow=False, font={"color": theme.faint}, **center)


def set_log_ms_axis(figure: go.Figure, values: list[float]) -> None:
    """Set a log y axis in ms that fits the values."""
    positive = [value for value in values if value > 0] or [1.0, 100.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    # At least a decade, so that noise of a few ms does not look like a change.
    padding = max(1.0, math.sqrt(MIN_AXIS_RATIO / (high / low)))
    low, high = low / padding, high * padding
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=(ticks := compute_log_ticks(low, high)),
        ticktext=[format_milliseconds(1000 * tick).replace(".00", "").replace(".0 ", " ") for tick in ticks],
    )


def build_count_axis(most: int) -> dict[str, Any]:
    """Return the properties of an axis of whole numbers from zero with at most four steps.

    The axis is hidden when nothing was counted.
    """
    steps = (step * 10**decade for decade in count() for step in (1, 2, 5))
    return {
        "rangemode": "tozero",
        "dtick": next(step for step in steps if 4 * step >= most),
        "tickformat": ",d",
        "visible": most > 0,
    }


def compute_log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two bounds: 1, 2 and 5 of each decade.

    Over a wide range only decades, so that labels do not crowd.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low <= 300 else (1,)
    return [
        float(factor * 10.0**exponent)
        for exponent in exponents
        for factor in factors
        if low <= factor * 10.0**exponent <= high
    ]
