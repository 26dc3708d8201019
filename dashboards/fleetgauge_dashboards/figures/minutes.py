"""A cluster's minutes: latency against its objective, and availability."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.over_time import (
    OverTime,
    draw_bands,
    draw_gaps,
    label_bands,
    stamp,
    time_axis,
)
from fleetgauge_dashboards.figures.theme import Theme, blank, log_ms_axis, say
from fleetgauge_dashboards.units import milliseconds, percent
from fleetgauge_dashboards.views.minutes import Minute, Timeline


def latency(model: Timeline, over: OverTime, look: Theme) -> go.Figure:
    """p99 of the successes and with failures counted, bad minutes marked, findings as bands."""
    figure = blank(look, 250, over.revision)
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
    time_axis(figure, look, over, model.grid.at)
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
    _say_if_none(figure, model, look)
    draw_bands(figure, over, look)
    label_bands(figure, over, look)
    return figure


def availability(model: Timeline, over: OverTime, look: Theme) -> go.Figure:
    """The pooled ratio of each minute, from the worst one up to 100%."""
    figure = blank(look, 170, over.revision)
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
    time_axis(figure, look, over, model.grid.at)
    figure.update_yaxes(range=[100 * (1 - 1.12 * room), 100 * (1 + 0.1 * room)], ticksuffix="%", nticks=5)
    draw_gaps(figure, model.gaps, look)
    _say_if_none(figure, model, look)
    draw_bands(figure, over, look)
    return figure


def _say_if_none(figure: go.Figure, model: Timeline, look: Theme) -> None:
    """Minutes that are not held any more are no gaps."""
    if not model.gaps and not any(model.minutes):
        say(figure, look, "No minute is held of this time.")


def _worst_home(minute: Minute | None) -> str:
    if minute is None or minute.latency_p99_ms is None:
        return ""
    home = "" if minute.worst_home is None else f" on broker {minute.worst_home}"
    return f"{milliseconds(1000 * minute.latency_p99_ms)}{home}"


#: Brokers with a row of their own in the strip.
ROWS = 8


def worst_homes_height(brokers: int) -> int:
    return 50 + 16 * max(1, min(brokers, ROWS))


def worst_homes(model: Timeline, over: OverTime, look: Theme) -> go.Figure:
    """A tick in its broker's row where that was the worst one; a row that fills is a broker to look at."""
    often = model.worst_homes
    rows = list(often)[:ROWS]
    figure = blank(look, worst_homes_height(len(often)), over.revision)
    at, times = model.grid.at, len(model.minutes) or 1
    for broker in sorted(rows):
        steps = often[broker]
        figure.add_scatter(
            x=[stamp(at[step] + model.grid.step / 2) for step in steps],
            y=[f"broker {broker}"] * len(steps),
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 11,
                "line": {"width": max(2, round(720 / times)), "color": _by_badness(model, steps, look)},
            },
            showlegend=False,
            customdata=[over.times.named_minute(at[step]) for step in steps],
            hovertemplate=f"broker {broker}, worst of %{{customdata}}<extra></extra>",
        )
    time_axis(figure, look, over)
    figure.update_layout(hovermode="closest", margin={"t": 8})
    figure.update_yaxes(type="category", autorange="reversed", fixedrange=True)
    draw_bands(figure, over, look)
    return figure


def _by_badness(model: Timeline, steps: Sequence[int], look: Theme) -> list[str]:
    bad = [minute is not None and minute.bad > 0 for minute in (model.minutes[step] for step in steps)]
    return [look.bad if one else look.good for one in bad]
