"""A cluster's minutes: latency against its objective, and availability."""

import math

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, blank, hatch, log_ms_axis, stamp, time_axis
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.units import milliseconds, percent
from fleetgauge_dashboards.views.cluster import Band
from fleetgauge_dashboards.views.minutes import Minute, Timeline


def latency(model: Timeline, bands: tuple[Band, ...], span: Span, look: Theme, revision: str) -> go.Figure:
    """p99 of the successes and with failures counted, bad minutes marked, findings as bands."""
    figure = blank(look, 250, revision)
    at = [stamp(time) for time in model.grid.at]
    censored = [minute.latency_p99_censored_ms if minute else None for minute in model.minutes]
    p99 = [minute.latency_p99_ms if minute else None for minute in model.minutes]
    figure.add_scatter(
        x=at,
        y=censored,
        name="failures counted",
        mode="lines",
        line={"color": look.bad, "dash": "dot", "width": 1.5},
        customdata=[milliseconds(1000 * ms) if ms is not None else "" for ms in censored],
        hovertemplate="failures counted %{customdata}<extra></extra>",
    )
    figure.add_scatter(
        x=at,
        y=p99,
        name="p99 of successes",
        mode="lines+markers" if model.grid.size <= 60 else "lines",
        marker={"size": 4},
        line={"color": look.good, "width": 2},
        customdata=[_worst_home(minute) for minute in model.minutes],
        hovertemplate="p99 %{customdata}<extra></extra>",
    )
    bad = [(time, ms) for time, ms, m in zip(at, censored, model.minutes, strict=True) if m and m.bad]
    if bad:
        figure.add_scatter(
            x=[time for time, _ in bad],
            y=[ms for _, ms in bad],
            name="bad minute" if model.grid.step_min == 1 else "bad minutes inside",
            mode="markers",
            marker={"symbol": "triangle-up", "size": 9, "color": look.bad},
            hoverinfo="skip",
        )
    time_axis(figure, look, span)
    objective = [model.objective_ms] if model.objective_ms else []
    log_ms_axis(figure, [ms for ms in [*p99, *censored, *objective] if ms is not None])
    if model.objective_ms:
        figure.add_hline(
            y=model.objective_ms,
            line={"color": look.text, "dash": "dashdot", "width": 1.2},
        )
        # Plotly wants the logarithm here and the value there.
        figure.add_annotation(
            x=1,
            xref="paper",
            y=math.log10(model.objective_ms),
            text=f"objective<br>{milliseconds(1000 * model.objective_ms)}",
            showarrow=False,
            xanchor="left",
            align="left",
            font={"size": 11, "color": look.text},
        )
    draw_gaps(figure, model.gaps, look)
    draw_bands(figure, bands, look)
    _labels(figure, bands, span, look)
    return figure


def availability(
    model: Timeline, bands: tuple[Band, ...], span: Span, look: Theme, revision: str
) -> go.Figure:
    """The pooled ratio of each minute, from the worst one up to 100%."""
    figure = blank(look, 170, revision)
    ratios = [minute.availability_pooled if minute else None for minute in model.minutes]
    worst = min((ratio for ratio in ratios if ratio is not None), default=1.0)
    room = max(1 - worst, 0.001)
    figure.add_scatter(
        x=[stamp(time) for time in model.grid.at],
        y=[None if ratio is None else 100 * ratio for ratio in ratios],
        name="pooled availability" if model.grid.step_min == 1 else "worst pooled availability of the step",
        mode="lines",
        line={"color": look.second, "width": 2, "shape": "hv"},
        customdata=[percent(ratio) for ratio in ratios],
        hovertemplate="availability %{customdata}<extra></extra>",
    )
    time_axis(figure, look, span)
    figure.update_yaxes(range=[100 * (1 - 1.12 * room), 100 * (1 + 0.1 * room)], ticksuffix="%", nticks=5)
    draw_gaps(figure, model.gaps, look)
    draw_bands(figure, bands, look)
    return figure


def _worst_home(minute: Minute | None) -> str:
    if minute is None or minute.latency_p99_ms is None:
        return ""
    home = "" if minute.worst_home is None else f" on broker {minute.worst_home}"
    return f"{milliseconds(1000 * minute.latency_p99_ms)}{home}"


def draw_gaps(figure: go.Figure, gaps: tuple[Span, ...], look: Theme) -> None:
    """Over the whole height, on an axis of its own that nobody sees."""
    if not gaps:
        return
    hatch(figure, gaps, (0.5,) * len(gaps), 1, look)
    figure.data[-1].update(yaxis="y2")
    figure.update_layout(
        barmode="overlay", yaxis2={"range": [0, 1], "visible": False, "overlaying": "y", "fixedrange": True}
    )


def draw_bands(figure: go.Figure, bands: tuple[Band, ...], look: Theme) -> None:
    """Findings behind the lines, suspected ones in another colour and with a dotted edge."""
    for band in bands:
        colour = look.warn if band.suspected else look.bad
        figure.add_vrect(
            x0=stamp(band.span.start),
            x1=stamp(band.span.end),
            fillcolor=colour,
            opacity=0.12,
            line={"width": 0},
            layer="below",
        )
        dash = "dot" if band.suspected else "solid"
        figure.add_vline(x=stamp(band.span.start), line={"color": colour, "dash": dash})


def _labels(figure: go.Figure, bands: tuple[Band, ...], span: Span, look: Theme) -> None:
    """At half height, where an outage has no points, stepping down so that neighbours stay readable."""
    for place, band in enumerate(band for band in bands if not band.suspected):
        late = band.span.start - span.start > 0.6 * (span.end - span.start)
        figure.add_annotation(
            x=stamp(band.span.start),
            y=0.6 - 0.13 * (place % 4),
            yref="y domain",
            text=f"▲ {band.label}",
            showarrow=False,
            xanchor="right" if late else "left",
            yanchor="top",
            bgcolor=look.panel,
            bordercolor=look.bad,
            font={"size": 11, "color": look.bad},
        )
