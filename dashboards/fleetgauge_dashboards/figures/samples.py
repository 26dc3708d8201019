"""Every sample of a minute: one curve a broker, from its fastest sample to its slowest."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_core.slo.levels import CENSORED_US
from fleetgauge_dashboards.figures.theme import Theme, blank, log_ms_axis
from fleetgauge_dashboards.links import Leg
from fleetgauge_dashboards.units import milliseconds
from fleetgauge_dashboards.views.samples import BrokerSamples

#: Of the room between two brokers, so much is a broker's own.
_WIDTH = 0.8
HEIGHT = 280


def samples(
    brokers: Sequence[BrokerSamples], leg: Leg, objective_ms: float | None, look: Theme, revision: str
) -> go.Figure:
    """Points are probes that succeeded; crosses at the deadline are those that failed; a bar is the p99."""
    figure = blank(look, HEIGHT, revision)
    points = [
        (place + _within(rank, len(one.latencies_us)), us / 1000, one, rank)
        for place, one in enumerate(brokers)
        for rank, us in enumerate(one.latencies_us)
    ]
    figure.add_scatter(
        x=[x for x, *_ in points],
        y=[ms for _, ms, *_ in points],
        name="succeeded",
        mode="markers",
        marker={"size": 5, "color": look.good, "opacity": 0.75},
        customdata=[
            f"broker {one.broker_id}: {milliseconds(1000 * ms)}, "
            f"{rank + 1:,} of {len(one.latencies_us):,} ascending"
            for _, ms, one, rank in points
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    deadline_ms = CENSORED_US[leg] / 1000
    failed = [
        (place + _within(which, times), code, one)
        for place, one in enumerate(brokers)
        for code, times in sorted(one.failures.items())
        for which in range(times)
    ]
    if failed:
        figure.add_scatter(
            x=[x for x, *_ in failed],
            y=[deadline_ms] * len(failed),
            name="failed, at its deadline",
            mode="markers",
            marker={"size": 7, "symbol": "x", "color": look.bad},
            customdata=[f"broker {one.broker_id}: {code}" for _, code, one in failed],
            hovertemplate="%{customdata}<extra></extra>",
        )
    _p99(figure, brokers, look)
    figure.update_layout(hovermode="closest", margin={"r": 24})
    figure.update_xaxes(
        range=[-0.6, max(len(brokers), 1) - 0.4],
        tickvals=list(range(len(brokers))),
        ticktext=[f"broker {one.broker_id}" for one in brokers],
        showgrid=False,
    )
    drawn = [ms for _, ms, *_ in points] + ([deadline_ms] if failed else [])
    log_ms_axis(figure, drawn + ([objective_ms] if objective_ms else []))
    if objective_ms:
        figure.add_hline(y=objective_ms, line={"color": look.text, "dash": "dashdot", "width": 1.2})
    return figure


def _within(rank: int, of: int) -> float:
    """Where in a broker's room a sample stands, from its middle."""
    return _WIDTH * ((rank + 0.5) / of - 0.5)


def _p99(figure: go.Figure, brokers: Sequence[BrokerSamples], look: Theme) -> None:
    """A bar at each broker's p99, as wide as its room."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, one in enumerate(brokers):
        if one.levels is not None and one.levels.latency_p99_us is not None:
            x += [place - _WIDTH / 2, place + _WIDTH / 2, None]
            y += [one.levels.latency_p99_us / 1000] * 2 + [None]
    figure.add_scatter(
        x=x,
        y=y,
        name="p99",
        mode="lines",
        line={"color": look.text, "width": 2},
        hoverinfo="skip",
    )
