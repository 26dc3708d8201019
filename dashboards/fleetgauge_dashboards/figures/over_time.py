"""What charts over minutes share: an axis in a zone's local times, gaps, and what happened meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.ticks import ticks
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.bands import Band, What

#: So many labels stand beside each other and stay readable.
LABELS = 12


@dataclass(frozen=True, slots=True)
class OverTime:
    """The minutes shown, whose clock tells them, what happened in them; a zoom lasts as ``revision`` does."""

    span: Span
    times: Times
    bands: tuple[Band, ...]
    revision: str


def time_axis(figure: go.Figure, look: Theme, over: OverTime, points: Sequence[datetime] = ()) -> None:
    """Exactly the span. Of ``points`` hovering tells the reader's time.

    Plotly knows no zones: it draws UTC, and the words along the axis are the zone's.
    """
    marks = ticks(over.span, over.times)
    figure.update_xaxes(
        type="date",
        range=[stamp(over.span.start), stamp(over.span.end)],
        tickvals=[stamp(at) for at, _ in marks],
        ticktext=[words for _, words in marks],
        unifiedhovertitle={"text": " "},
        showspikes=True,
        spikemode="across",
        spikethickness=1,
        spikedash="dot",
        spikecolor=look.faint,
    )
    if points:
        _tell_time(figure, over.times, points)


def _tell_time(figure: go.Figure, times: Times, points: Sequence[datetime]) -> None:
    """By a line that nobody sees, the first that is hovered over."""
    figure.add_scatter(
        x=[stamp(at) for at in points],
        y=[0.5] * len(points),
        yaxis="y2",
        mode="lines",
        line={"width": 0},
        showlegend=False,
        customdata=[times.named_minute(at) for at in points],
        hovertemplate="<b>%{customdata}</b><extra></extra>",
    )
    figure.data = (figure.data[-1], *figure.data[:-1])
    _whole_height(figure)


def _whole_height(figure: go.Figure) -> None:
    """An axis of its own from 0 to 1, that nobody sees."""
    own = {"type": "linear", "range": [0, 1], "visible": False, "overlaying": "y", "fixedrange": True}
    figure.update_layout(yaxis2=own)


def stamp(at: datetime) -> str:
    """A time as plotly reads it: without an offset, or it would be moved to the browser's zone."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def hatch(
    figure: go.Figure, gaps: Sequence[Span], y: Sequence[str | float], width: float, look: Theme
) -> None:
    """Hatched bars over stretches without measurement: neither good nor bad, and not white."""
    if not gaps:
        return
    figure.add_bar(
        base=[stamp(gap.start) for gap in gaps],
        x=[1000 * (gap.end - gap.start).total_seconds() for gap in gaps],
        y=list(y),
        width=width,
        orientation="h",
        name="not measured",
        marker={
            "color": "rgba(0,0,0,0)",
            "line": {"width": 0},
            "pattern": {"shape": "/", "size": 6, "fgcolor": look.faint, "solidity": 0.18},
        },
        hoverinfo="skip",
    )


def draw_gaps(figure: go.Figure, gaps: Sequence[Span], look: Theme) -> None:
    """Over the whole height."""
    if not gaps:
        return
    hatch(figure, gaps, (0.5,) * len(gaps), 1, look)
    figure.data[-1].update(yaxis="y2")
    figure.update_layout(barmode="overlay")
    _whole_height(figure)


def draw_bands(figure: go.Figure, over: OverTime, look: Theme) -> None:
    """Behind the lines; colour, edge and label each say what it is."""
    for band in over.bands:
        colour, opacity, dash = _style(band.what, look)
        figure.add_vrect(
            x0=stamp(band.span.start),
            x1=stamp(band.span.end),
            fillcolor=colour,
            opacity=opacity,
            line={"width": 0},
            layer="below",
        )
        figure.add_vline(x=stamp(band.span.start), line={"color": colour, "dash": dash})


def _style(what: What, look: Theme) -> tuple[str, float, str]:
    return {
        What.FINDING: (look.bad, 0.12, "solid"),
        What.SUSPICION: (look.warn, 0.12, "dot"),
        What.CORRECTION: (look.faint, 0.22, "dash"),
        What.ACTION: (look.third, 0.12, "longdash"),
    }[what]


_SIGNS = {What.FINDING: "▲", What.CORRECTION: "⊘", What.ACTION: "◆"}


def label_bands(figure: go.Figure, over: OverTime, look: Theme) -> None:
    """At half height, where an outage has no points, stepping down so that neighbours stay readable."""
    told = [band for band in over.bands if band.what in _SIGNS][:LABELS]
    for place, band in enumerate(told):
        late = band.span.start - over.span.start > 0.6 * (over.span.end - over.span.start)
        colour, *_ = _style(band.what, look)
        figure.add_annotation(
            x=stamp(band.span.start),
            y=0.62 - 0.13 * (place % 4),
            yref="y domain",
            text=f"{_SIGNS[band.what]} {band.label}",
            showarrow=False,
            xanchor="right" if late else "left",
            yanchor="top",
            bgcolor=look.panel,
            bordercolor=colour,
            font={"size": 11, "color": look.text if band.what is What.CORRECTION else colour},
        )
