"""Plot the causes that burn the latency budget as a Pareto chart."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, build_count_axis, new_figure, show_note
from fleetgauge_dashboards.units import format_count, format_percent
from fleetgauge_dashboards.views.causes import BurnCause

HEIGHT = 220
#: The most bars; further causes are combined in the last.
MAX_BARS = 6
#: The axis has space for at least this many bars, so that a single bar does not fill the chart.
_LEAST_BARS = 3


def plot_burn_causes(causes: Sequence[BurnCause], theme: Theme) -> go.Figure:
    """Plot the bad minutes of each cause, with its share and its bad minutes in the week before."""
    figure = new_figure(theme, HEIGHT, "causes")
    shown = _with_rest(causes)
    figure.add_bar(
        x=[cause.bad_minutes for cause in shown],
        y=[cause.cause for cause in shown],
        orientation="h",
        marker={"color": theme.good, "line": {"width": 0}},
        text=[f"{cause.bad_minutes:,} min, {format_percent(cause.share, 0)}" for cause in shown],
        textposition="auto",
        textfont={"size": 12},
        customdata=[
            f"{format_count(cause.clusters, 'cluster')}; week before: {cause.bad_minutes_before:,} min"
            for cause in shown
        ],
        hovertemplate="%{y}: %{text}<br>%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure.update_layout(hovermode="closest", margin={"l": 150, "r": 24, "t": 10}, bargap=0.25)
    most = max((cause.bad_minutes for cause in shown), default=0)
    figure.update_xaxes(**build_count_axis(most), fixedrange=True)
    lowest = max(len(shown), _LEAST_BARS) - 0.5
    figure.update_yaxes(type="category", range=[lowest, -0.5], showgrid=False, fixedrange=True)
    if not shown:
        figure.update_yaxes(visible=False)
        show_note(figure, theme, "No bad minute with a known cause.")
    return figure


def _with_rest(causes: Sequence[BurnCause]) -> list[BurnCause]:
    if len(causes) <= MAX_BARS:
        return list(causes)
    head, rest = causes[: MAX_BARS - 1], causes[MAX_BARS - 1 :]
    return [
        *head,
        BurnCause(
            f"{len(rest)} others",
            sum(cause.bad_minutes for cause in rest),
            sum(cause.share for cause in rest),
            max(cause.clusters for cause in rest),
            sum(cause.bad_minutes_before for cause in rest),
        ),
    ]
