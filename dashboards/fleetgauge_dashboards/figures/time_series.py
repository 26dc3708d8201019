"""Share what charts over time need: an axis in local time, gaps, and bands for what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.ticks import compute_ticks
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.bands import Band, BandKind

#: The most labels that stay legible in one chart.
MAX_LABELS = 12


@dataclass(frozen=True, slots=True)
class ChartContext:
    """The span shown, its time format, and what happened in it; a zoom lasts as long as ``revision``."""

    span: Span
    times: TimeFormat
    bands: tuple[Band, ...]
    revision: str


def set_time_axis(
    figure: go.Figure, theme: Theme, context: ChartContext, points: Sequence[datetime] = ()
) -> None:
    """Set the time axis to exactly the span; hovering shows the local time of ``points``.

    Plotly has no time zones: it draws UTC, and the labels along the axis are local times.
    """
    tick_labels = compute_ticks(context.span, context.times)
    figure.update_xaxes(
        type="date",
        range=[format_plotly_time(context.span.start), format_plotly_time(context.span.end)],
        tickvals=[format_plotly_time(at) for at, _ in tick_labels],
        ticktext=[label for _, label in tick_labels],
        unifiedhovertitle={"text": " "},
        showspikes=True,
        spikemode="across",
        spikethickness=1,
        spikedash="dot",
        spikecolor=theme.faint,
    )
    if points:
        _add_hover_times(figure, context.times, points)


def _add_hover_times(figure: go.Figure, times: TimeFormat, points: Sequence[datetime]) -> None:
    """Add an invisible line, first in the hover box, that shows the local time."""
    figure.add_scatter(
        x=[format_plotly_time(at) for at in points],
        y=[0.5] * len(points),
        yaxis="y2",
        mode="lines",
        line={"width": 0},
        showlegend=False,
        customdata=[times.format_long_minute(at) for at in points],
        hovertemplate="<b>%{customdata}</b><extra></extra>",
    )
    figure.data = (figure.data[-1], *figure.data[:-1])
    _add_full_height_axis(figure)


def _add_full_height_axis(figure: go.Figure) -> None:
    """Add an invisible second axis from 0 to 1."""
    axis = {"type": "linear", "range": [0, 1], "visible": False, "overlaying": "y", "fixedrange": True}
    figure.update_layout(yaxis2=axis)


def format_plotly_time(at: datetime) -> str:
    """Return a time as Plotly reads it: without an offset, or it would be moved to the browser's zone."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def draw_hatching(
    figure: go.Figure, gaps: Sequence[Span], y: Sequence[str | float], width: float, theme: Theme
) -> None:
    """Draw hatched bars over gaps in the measurement, so that they look neither good nor bad."""
    if not gaps:
        return
    figure.add_bar(
        base=[format_plotly_time(gap.start) for gap in gaps],
        x=[1000 * (gap.end - gap.start).total_seconds() for gap in gaps],
        y=list(y),
        width=width,
        orientation="h",
        name="not measured",
        marker={
            "color": "rgba(0,0,0,0)",
            "line": {"width": 0},
            "pattern": {"shape": "/", "size": 6, "fgcolor": theme.faint, "solidity": 0.18},
        },
        hoverinfo="skip",
    )


def draw_gaps(figure: go.Figure, gaps: Sequence[Span], theme: Theme) -> None:
    """Hatch the gaps over the whole height of the chart."""
    if not gaps:
        return
    draw_hatching(figure, gaps, (0.5,) * len(gaps), 1, theme)
    figure.data[-1].update(yaxis="y2")
    figure.update_layout(barmode="overlay")
    _add_full_height_axis(figure)


def draw_bands(figure: go.Figure, context: ChartContext, theme: Theme) -> None:
    """Draw the bands behind the lines; colour, edge and label each show the kind."""
    for band in context.bands:
        colour, opacity, dash = _style(band.kind, theme)
        figure.add_vrect(
            x0=format_plotly_time(band.span.start),
            x1=format_plotly_time(band.span.end),
            fillcolor=colour,
            opacity=opacity,
            line={"width": 0},
            layer="below",
        )
        figure.add_vline(x=format_plotly_time(band.span.start), line={"color": colour, "dash": dash})


def _style(kind: BandKind, theme: Theme) -> tuple[str, float, str]:
    return {
        BandKind.FINDING: (theme.bad, 0.12, "solid"),
        BandKind.SUSPICION: (theme.warn, 0.12, "dot"),
        BandKind.CORRECTION: (theme.faint, 0.22, "dash"),
        BandKind.ACTION: (theme.third, 0.12, "longdash"),
        BandKind.CHANGE: (theme.second, 0.12, "dashdot"),
    }[kind]


_SIGNS = {BandKind.FINDING: "▲", BandKind.CORRECTION: "⊘", BandKind.ACTION: "◆", BandKind.CHANGE: "◇"}


def label_bands(figure: go.Figure, context: ChartContext, theme: Theme) -> None:
    """Label the bands at half height, where an outage has no points.

    Labels step down, so that neighbours stay legible.
    """
    labelled = [band for band in context.bands if band.kind in _SIGNS][:MAX_LABELS]
    for place, band in enumerate(labelled):
        is_late = band.span.start - context.span.start > 0.6 * (context.span.end - context.span.start)
        colour, *_ = _style(band.kind, theme)
        figure.add_annotation(
            x=format_plotly_time(band.span.start),
            y=0.62 - 0.13 * (place % 4),
            yref="y domain",
            text=f"{_SIGNS[band.kind]} {band.label}",
            showarrow=False,
            xanchor="right" if is_late else "left",
            yanchor="top",
            bgcolor=theme.panel,
            bordercolor=colour,
            font={"size": 11, "color": theme.text if band.kind is BandKind.CORRECTION else colour},
        )
