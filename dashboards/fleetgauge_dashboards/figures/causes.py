"""What burns the budget: a bar a cause, the longest on top (a Pareto chart)."""

from collections.abc import Sequence

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, blank, count_axis, say
from fleetgauge_dashboards.units import count, percent
from fleetgauge_dashboards.views.causes import Cause

HEIGHT = 220
#: Bars that fit; the rest is one.
BARS = 6
#: There is room for so many at least: one alone is still a bar, not a wall.
_LEAST_BARS = 3


def pareto(found: Sequence[Cause], look: Theme) -> go.Figure:
    """Bad minutes from zero, with each cause's share and what it took the week before."""
    figure = blank(look, HEIGHT, "causes")
    shown = _with_rest(found)
    figure.add_bar(
        x=[one.bad_minutes for one in shown],
        y=[one.cause for one in shown],
        orientation="h",
        marker={"color": look.good, "line": {"width": 0}},
        text=[f"{one.bad_minutes:,} min, {percent(one.share, 0)}" for one in shown],
        textposition="auto",
        textfont={"size": 12},
        customdata=[
            f"{count(one.clusters, 'cluster')}; week before {one.bad_minutes_before:,} min" for one in shown
        ],
        hovertemplate="%{y}: %{text}<br>%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure.update_layout(hovermode="closest", margin={"l": 150, "r": 24, "t": 10}, bargap=0.25)
    most = max((one.bad_minutes for one in shown), default=0)
    figure.update_xaxes(**count_axis(most), fixedrange=True)
    lowest = max(len(shown), _LEAST_BARS) - 0.5
    figure.update_yaxes(type="category", range=[lowest, -0.5], showgrid=False, fixedrange=True)
    if not shown:
        figure.update_yaxes(visible=False)
        say(figure, look, "No bad minute has a cause on record.")
    return figure


def _with_rest(found: Sequence[Cause]) -> list[Cause]:
    if len(found) <= BARS:
        return list(found)
    head, rest = found[: BARS - 1], found[BARS - 1 :]
    return [
        *head,
        Cause(
            f"{len(rest)} others",
            sum(one.bad_minutes for one in rest),
            sum(one.share for one in rest),
            max(one.clusters for one in rest),
            sum(one.bad_minutes_before for one in rest),
        ),
    ]
