"""A week's latency budget as it goes: against the pace at which it would last just to the end."""

from dataclasses import replace

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.over_time import OverTime, draw_bands, stamp, time_axis
from fleetgauge_dashboards.figures.theme import Theme, blank, say
from fleetgauge_dashboards.units import minutes
from fleetgauge_dashboards.views.burn_down import BurnDown

HEIGHT = 190


def burn_down(model: BurnDown | None, over: OverTime, look: Theme) -> go.Figure:
    """Minutes left from the whole budget down, below zero where it is overspent; the week is the axis."""
    figure = blank(look, HEIGHT, over.revision)
    if model is None:
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        say(figure, look, "No minute of this week is held any more.")
        return figure
    week = replace(over, span=model.week)
    figure.add_scatter(
        x=[stamp(model.week.start), stamp(model.week.end)],
        y=[model.budget, 0],
        name="even pace",
        mode="lines",
        line={"color": look.faint, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    spent = model.left[-1] < 0
    figure.add_scatter(
        x=[stamp(at) for at in model.at],
        y=list(model.left),
        name="budget left",
        mode="lines",
        line={"color": look.bad if spent else look.good, "width": 2.5, "shape": "hv"},
        customdata=[minutes(left) for left in model.left],
        hovertemplate="left %{customdata}<extra></extra>",
    )
    figure.add_hline(y=0, line={"color": look.text, "width": 1.2})
    time_axis(figure, look, week, model.at)
    low = min(0.0, *model.left)
    room = model.budget - low
    figure.update_yaxes(range=[low - 0.08 * room, model.budget + 0.08 * room], ticksuffix=" min", nticks=5)
    draw_bands(figure, week, look)
    return figure
