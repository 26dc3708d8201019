"""Records in quarantine by day and reason."""

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import PATTERNS, Theme, blank, count_axis, say
from fleetgauge_dashboards.views.trust import Refused

HEIGHT = 200


def refused(model: Refused, look: Theme) -> go.Figure:
    """Stacked from zero; a pattern says again what a colour says."""
    figure = blank(look, HEIGHT, "refused")
    names = [f"{day:%d %b}" for day in model.days]
    for place, (reason, counts) in enumerate(model.by_reason.items()):
        figure.add_bar(
            x=names,
            y=list(counts),
            name=reason,
            marker={
                "color": look.series[place % len(look.series)],
                "line": {"width": 0},
                "pattern": {"shape": PATTERNS[place % len(PATTERNS)], "size": 5, "solidity": 0.3},
            },
            hovertemplate=f"{reason}: %{{y:,}}<extra></extra>",
        )
    figure.update_layout(barmode="stack", margin={"r": 24})
    figure.update_xaxes(type="category")
    most = max(map(sum, zip(*model.by_reason.values(), strict=True)), default=0)
    figure.update_yaxes(**count_axis(most))
    if not model.total:
        say(figure, look, "No record was refused.")
    return figure
