"""Plot a cluster's minutes: latency against its objective, availability, and the worst broker."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, new_figure, set_log_ms_axis, show_note
from fleetgauge_dashboards.figures.time_series import (
    ChartContext,
    draw_bands,
    draw_gaps,
    format_plotly_time,
    label_bands,
    set_time_axis,
)
from fleetgauge_dashboards.units import format_milliseconds, format_percent
from fleetgauge_dashboards.views.minutes import ClusterTimeline, TimelineStep


def plot_latency(model: ClusterTimeline, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the p99 of successes and with failures; bad minutes are marked and findings shown as bands."""
    figure = new_figure(theme, 250, context.revision)
    at = [format_plotly_time(time) for time in model.grid.step_starts]
    censored = [minute.latency_p99_censored_ms if minute else None for minute in model.minutes]
    p99 = [minute.latency_p99_ms if minute else None for minute in model.minutes]
    figure.add_scatter(
        x=at,
        y=censored,
        name="with failures",
        mode="lines",
        line={"color": theme.bad, "dash": "dot", "width": 1.5},
        customdata=[format_milliseconds(1000 * ms) if ms is not None else "" for ms in censored],
        hovertemplate="p99 with failures %{customdata}<extra></extra>",
    )
    figure.add_scatter(
        x=at,
        y=p99,
        name="p99 of successes",
        mode="lines+markers" if model.grid.size <= 60 else "lines",
        marker={"size": 4},
        line={"color": theme.good, "width": 2},
        customdata=[_hover_text(minute) for minute in model.minutes],
        hovertemplate="p99 %{customdata}<extra></extra>",
    )
    bad = [
        (time, ms)
        for time, ms, step in zip(at, censored, model.minutes, strict=True)
        if step and step.bad_minutes
    ]
    if bad:
        figure.add_scatter(
            x=[time for time, _ in bad],
            y=[ms for _, ms in bad],
            name="bad minute" if model.grid.step_min == 1 else "step with bad minutes",
            mode="markers",
            marker={"symbol": "triangle-up", "size": 9, "color": theme.bad},
            hoverinfo="skip",
        )
    set_time_axis(figure, theme, context, model.grid.step_starts)
    objective = [model.objective_ms] if model.objective_ms else []
    set_log_ms_axis(figure, [ms for ms in [*p99, *censored, *objective] if ms is not None])
    if model.objective_ms:
        figure.add_hline(
            y=model.objective_ms,
            line={"color": theme.text, "dash": "dashdot", "width": 1.2},
        )
        # An annotation on a log axis takes the logarithm, a line takes the value.
        figure.add_annotation(
            x=1,
            xref="paper",
            y=math.log10(model.objective_ms),
            text=f"objective<br>{format_milliseconds(1000 * model.objective_ms)}",
            showarrow=False,
            xanchor="left",
            align="left",
            font={"size": 11, "color": theme.text},
        )
    draw_gaps(figure, model.gaps, theme)
    _note_if_empty(figure, model, theme)
    draw_bands(figure, context, theme)
    label_bands(figure, context, theme)
    return figure


def plot_availability(model: ClusterTimeline, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the pooled availability of each minute, from the worst up to 100%."""
    figure = new_figure(theme, 170, context.revision)
    ratios = [minute.availability_pooled if minute else None for minute in model.minutes]
    worst = min((ratio for ratio in ratios if ratio is not None), default=1.0)
    height = max(1 - worst, 0.001)
    figure.add_scatter(
        x=[format_plotly_time(time) for time in model.grid.step_starts],
        y=[None if ratio is None else 100 * ratio for ratio in ratios],
        name="pooled availability" if model.grid.step_min == 1 else "worst pooled availability of the step",
        mode="lines",
        line={"color": theme.second, "width": 2, "shape": "hv"},
        customdata=[format_percent(ratio) for ratio in ratios],
        hovertemplate="availability %{customdata}<extra></extra>",
    )
    set_time_axis(figure, theme, context, model.grid.step_starts)
    figure.update_yaxes(range=[100 * (1 - 1.12 * height), 100 * (1 + 0.1 * height)], ticksuffix="%", nticks=5)
    draw_gaps(figure, model.gaps, theme)
    _note_if_empty(figure, model, theme)
    draw_bands(figure, context, theme)
    return figure


def _note_if_empty(figure: go.Figure, model: ClusterTimeline, theme: Theme) -> None:
    """Show a note where minutes have expired, which is not a gap."""
    if not model.gaps and not any(model.minutes):
        show_note(figure, theme, "No minutes are stored for this time.")


def _hover_text(minute: TimelineStep | None) -> str:
    if minute is None or minute.latency_p99_ms is None:
        return ""
    home = "" if minute.worst_home is None else f" on broker {minute.worst_home}"
    return f"{format_milliseconds(1000 * minute.latency_p99_ms)}{home}"


#: The most brokers with a row in the strip.
MAX_ROWS = 8


def compute_worst_homes_height(brokers: int) -> int:
    """Return the height in pixels of the strip of worst brokers."""
    return 50 + 16 * max(1, min(brokers, MAX_ROWS))


def plot_worst_homes(model: ClusterTimeline, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot a tick in a broker's row for each step in which it was the worst broker.

    A row that fills up shows a broker to investigate.
    """
    steps_by_broker = model.worst_homes
    rows = list(steps_by_broker)[:MAX_ROWS]
    figure = new_figure(theme, compute_worst_homes_height(len(steps_by_broker)), context.revision)
    at, step_count = model.grid.step_starts, len(model.minutes) or 1
    for broker in sorted(rows):
        steps = steps_by_broker[broker]
        figure.add_scatter(
            x=[format_plotly_time(at[step] + model.grid.step / 2) for step in steps],
            y=[f"broker {broker}"] * len(steps),
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 11,
                "line": {
                    "width": max(2, round(720 / step_count)),
                    "color": _step_colours(model, steps, theme),
                },
            },
            showlegend=False,
            customdata=[context.times.format_long_minute(at[step]) for step in steps],
            hovertemplate=f"broker {broker}, worst of %{{customdata}}<extra></extra>",
        )
    set_time_axis(figure, theme, context)
    figure.update_layout(hovermode="closest", margin={"t": 8})
    figure.update_yaxes(type="category", autorange="reversed", fixedrange=True)
    draw_bands(figure, context, theme)
    return figure


def _step_colours(model: ClusterTimeline, steps: Sequence[int], theme: Theme) -> list[str]:
    step_is_bad = [
        minute is not None and minute.bad_minutes > 0 for minute in (model.minutes[step] for step in steps)
    ]
    return [theme.bad if is_bad else theme.good for is_bad in step_is_bad]
