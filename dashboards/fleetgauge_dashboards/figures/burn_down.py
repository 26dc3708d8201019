"""Plot how a week's latency budget is spent, against the pace that lasts exactly to the end of the week."""

from dataclasses import replace

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, new_figure, show_note
from fleetgauge_dashboards.figures.time_series import (
    ChartContext,
    draw_bands,
    format_plotly_time,
    set_time_axis,
)
from fleetgauge_dashboards.units import format_minutes
from fleetgauge_dashboards.views.burn_down import BurnDown

HEIGHT = 190


def plot_burn_down(model: BurnDown | None, context: ChartContext, theme: Theme) -> go.Figure:
    """Plot the minutes left, from the whole budget to below zero where it is overspent."""
    figure = new_figure(theme, HEIGHT, context.revision)
    if model is None:
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        show_note(figure, theme, "No minutes of this week are stored any more.")
        return figure
    week = replace(context, span=model.week)
    figure.add_scatter(
        x=[format_plotly_time(model.week.start), format_plotly_time(model.week.end)],
        y=[model.budget, 0],
        name="even pace",
        mode="lines",
        line={"color": theme.faint, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    is_overspent = model.left[-1] < 0
    figure.add_scatter(
        x=[format_plotly_time(at) for at in model.at],
        y=list(model.left),
        name="budget left",
        mode="lines",
        line={"color": theme.bad if is_overspent else theme.good, "width": 2.5, "shape": "hv"},
        customdata=[format_minutes(left) for left in model.left],
        hovertemplate="left %{customdata}<extra></extra>",
    )
    figure.add_hline(y=0, line={"color": theme.text, "width": 1.2})
    set_time_axis(figure, theme, week, model.at)
    lowest = min(0.0, *model.left)
    height = model.budget - lowest
    figure.update_yaxes(
        range=[lowest - 0.08 * height, model.budget + 0.08 * height], ticksuffix=" min", nticks=5
    )
    draw_bands(figure, week, theme)
    return figure
