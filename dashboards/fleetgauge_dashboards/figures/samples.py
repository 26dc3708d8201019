"""Plot every sample of a minute: a curve for each broker, from its fastest sample to its slowest."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_LATENCY_US
from fleetgauge_dashboards.figures.theme import Theme, new_figure, set_log_ms_axis
from fleetgauge_dashboards.units import format_milliseconds
from fleetgauge_dashboards.views.samples import BrokerSamples

#: The share of the distance between two brokers that a broker's samples take.
_WIDTH = 0.8
HEIGHT = 280


def plot_samples(
    brokers: Sequence[BrokerSamples], leg: Leg, objective_ms: float | None, theme: Theme, revision: str
) -> go.Figure:
    """Plot successes as points, failures as crosses at the deadline, and each p99 as a bar."""
    figure = new_figure(theme, HEIGHT, revision)
    points = [
        (index + _offset(rank, len(broker.latencies_us)), us / 1000, broker, rank)
        for index, broker in enumerate(brokers)
        for rank, us in enumerate(broker.latencies_us)
    ]
    figure.add_scatter(
        x=[x for x, *_ in points],
        y=[ms for _, ms, *_ in points],
        name="succeeded",
        mode="markers",
        marker={"size": 5, "color": theme.good, "opacity": 0.75},
        customdata=[
            f"broker {broker.broker_id}: {format_milliseconds(1000 * ms)}, "
            f"{rank + 1:,} of {len(broker.latencies_us):,} ascending"
            for _, ms, broker, rank in points
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    deadline_ms = CENSORED_LATENCY_US[leg] / 1000
    failed = [
        (index + _offset(number, count), code, broker)
        for index, broker in enumerate(brokers)
        for code, count in sorted(broker.failures.items())
        for number in range(count)
    ]
    if failed:
        figure.add_scatter(
            x=[x for x, *_ in failed],
            y=[deadline_ms] * len(failed),
            name="failed, at its deadline",
            mode="markers",
            marker={"size": 7, "symbol": "x", "color": theme.bad},
            customdata=[f"broker {broker.broker_id}: {code}" for _, code, broker in failed],
            hovertemplate="%{customdata}<extra></extra>",
        )
    _draw_p99(figure, brokers, theme)
    figure.update_layout(hovermode="closest", margin={"r": 24})
    figure.update_xaxes(
        range=[-0.6, max(len(brokers), 1) - 0.4],
        tickvals=list(range(len(brokers))),
        ticktext=[f"broker {broker.broker_id}" for broker in brokers],
        showgrid=False,
    )
    drawn = [ms for _, ms, *_ in points] + ([deadline_ms] if failed else [])
    set_log_ms_axis(figure, drawn + ([objective_ms] if objective_ms else []))
    if objective_ms:
        figure.add_hline(y=objective_ms, line={"color": theme.text, "dash": "dashdot", "width": 1.2})
    return figure


def _offset(rank: int, count: int) -> float:
    """Return the horizontal offset of a sample from the middle of its broker's place."""
    return _WIDTH * ((rank + 0.5) / count - 0.5)


def _draw_p99(figure: go.Figure, brokers: Sequence[BrokerSamples], theme: Theme) -> None:
    """Draw a bar at each broker's p99."""
    x: list[float | None] = []
    y: list[float | None] = []
    for index, broker in enumerate(brokers):
        if broker.levels is not None and broker.levels.latency_p99_us is not None:
            x += [index - _WIDTH / 2, index + _WIDTH / 2, None]
            y += [broker.levels.latency_p99_us / 1000] * 2 + [None]
    figure.add_scatter(
        x=x,
        y=y,
        name="p99",
        mode="lines",
        line={"color": theme.text, "width": 2},
        hoverinfo="skip",
    )
