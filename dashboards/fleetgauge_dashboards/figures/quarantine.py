"""Plot quarantined records by day and reason."""

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import PATTERNS, Theme, build_count_axis, new_figure, show_note
from fleetgauge_dashboards.views.data_quality import QuarantinedRecords

HEIGHT = 200


def plot_quarantined_records(model: QuarantinedRecords, theme: Theme) -> go.Figure:
    """Plot the counts stacked from zero; a pattern repeats what a colour says."""
    figure = new_figure(theme, HEIGHT, "refused")
    names = [f"{day:%d %b}" for day in model.days]
    for index, (reason, counts) in enumerate(model.by_reason.items()):
        figure.add_bar(
            x=names,
            y=list(counts),
            name=reason,
            marker={
                "color": theme.series[index % len(theme.series)],
                "line": {"width": 0},
                "pattern": {"shape": PATTERNS[index % len(PATTERNS)], "size": 5, "solidity": 0.3},
            },
            hovertemplate=f"{reason}: %{{y:,}}<extra></extra>",
        )
    figure.update_layout(barmode="stack", margin={"r": 24})
    figure.update_xaxes(type="category")
    most = max(map(sum, zip(*model.by_reason.values(), strict=True)), default=0)
    figure.update_yaxes(**build_count_axis(most))
    if not model.total:
        show_note(figure, theme, "No record was quarantined.")
    return figure
