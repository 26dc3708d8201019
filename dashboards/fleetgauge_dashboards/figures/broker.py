"""One broker: its legs' latencies, and what failed."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.over_time import OverTime, draw_bands, draw_gaps, stamp, time_axis
from fleetgauge_dashboards.figures.theme import PATTERNS, Theme, blank, count_axis, log_ms_axis, say
from fleetgauge_dashboards.units import milliseconds
from fleetgauge_dashboards.views.broker import BrokerMinutes, LegTimeline
from fleetgauge_dashboards.views.minutes import Grid

LATENCY_HEIGHT = 220
FAILURES_HEIGHT = 170


def leg_latency(model: LegTimeline, steps: Grid, over: OverTime, look: Theme) -> go.Figure:
    """Median and p99 of the successes, and the p99 with failures counted."""
    figure = blank(look, LATENCY_HEIGHT, over.revision)
    at = [stamp(time) for time in steps.at]
    lines: Sequence[tuple[str, tuple[float | None, ...], str, str]] = (
        ("failures counted", model.p99_censored_ms, look.bad, "dot"),
        ("p99 of successes", model.p99_ms, look.good, "solid"),
        ("median", model.p50_ms, look.second, "dash"),
    )
    for name, values, colour, dash in lines:
        figure.add_scatter(
            x=at,
            y=values,
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash, "width": 2},
            customdata=[milliseconds(None if ms is None else 1000 * ms) for ms in values],
            hovertemplate=f"{name} %{{customdata}}<extra></extra>",
        )
    time_axis(figure, look, over, steps.at)
    log_ms_axis(figure, [ms for _, values, *_ in lines for ms in values if ms is not None])
    draw_gaps(figure, model.gaps, look)
    draw_bands(figure, over, look)
    return figure


def failures(model: BrokerMinutes, over: OverTime, look: Theme) -> go.Figure:
    """Failed probes of each step by leg and reason, stacked."""
    figure = blank(look, FAILURES_HEIGHT, over.revision)
    middles = [stamp(at + model.grid.step / 2) for at in model.grid.at]
    codes = [(leg.leg, code, counts) for leg in model.legs for code, counts in leg.failures.items()]
    for place, (leg, code, counts) in enumerate(codes):
        figure.add_bar(
            x=middles,
            y=list(counts),
            width=60_000 * model.grid.step_min,
            name=f"{leg}: {code}",
            marker={
                "color": look.series[place % len(look.series)],
                "line": {"width": 0},
                "pattern": {"shape": PATTERNS[place % len(PATTERNS)], "size": 5, "solidity": 0.3},
            },
            hovertemplate=f"{leg}, {code}: %{{y:,}}<extra></extra>",
        )
    time_axis(figure, look, over, model.grid.at)
    figure.update_layout(barmode="stack")
    most = max(map(sum, zip(*(counts for *_, counts in codes), strict=True)), default=0)
    figure.update_yaxes(**count_axis(most))
    if not codes:
        say(figure, look, "No probe failed.")
    draw_bands(figure, over, look)
    return figure
