"""Plot regions with their clusters, and the mirrors between them with their replication lag."""

from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, escape_markup, new_figure
from fleetgauge_dashboards.units import format_number, format_seconds
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag
from fleetgauge_dashboards.views.regions import (
    BOX_HEIGHT,
    BOX_WIDTH,
    WIDTH,
    ClusterBox,
    MirrorArrow,
    RegionArea,
    RegionMap,
)

#: The height in pixels until the map's height is known.
HEIGHT = 280
_LEGEND = 24
#: With more mirrors, only those that are not fresh are labelled; the others show their values on hover.
MAX_LABELLED_MIRRORS = 24
#: The characters that fit into a box.
_LONGEST = 22


def plot_region_map(model: RegionMap, theme: Theme) -> go.Figure:
    """Plot the map; a dash and a sign repeat what a colour says."""
    figure = new_figure(theme, round(model.height) + _LEGEND, "regions")
    figure.update_layout(
        margin={"l": 0, "r": 0, "t": _LEGEND, "b": 0},
        hovermode="closest",
        dragmode=False,
        legend={"itemclick": False, "itemdoubleclick": False},
    )
    figure.update_xaxes(range=[0, WIDTH], visible=False, fixedrange=True)
    figure.update_yaxes(range=[0, model.height], visible=False, fixedrange=True)
    for state in MirrorHealth:
        for place, arrow in enumerate(arrow for arrow in model.arrows if arrow.mirror.state is state):
            _draw_arrow(figure, arrow, place == 0, theme)
    nodes = [node for area in model.areas for node in area.nodes]
    labelled = [
        arrow
        for arrow in model.arrows
        if len(model.arrows) <= MAX_LABELLED_MIRRORS or arrow.mirror.state is not MirrorHealth.FRESH
    ]
    # Set all at once: adding them one by one takes quadratic time in Plotly.
    figure.update_layout(
        shapes=[*(_area(area, theme) for area in model.areas), *(_box(node, theme) for node in nodes)],
        annotations=[
            *(_region(area, theme) for area in model.areas),
            *(
                {"x": node.x, "y": node.y, "text": _shorten(node.cluster_id), "showarrow": False}
                for node in nodes
            ),
            *(_label(arrow, theme) for arrow in labelled),
            *(() if model.arrows else (_empty_note(model, theme),)),
        ],
    )
    return figure


def _empty_note(model: RegionMap, theme: Theme) -> dict[str, Any]:
    return {
        "x": WIDTH / 2,
        "y": model.height / 2,
        "text": "No mirror observed.",
        "showarrow": False,
        "font": {"color": theme.faint},
    }


def _area(area: RegionArea, theme: Theme) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": area.x0,
        "y0": area.y0,
        "x1": area.x1,
        "y1": area.y1,
        "line": {"color": theme.faint, "width": 1, "dash": "solid" if area.is_named else "dot"},
        "fillcolor": theme.grid,
        "layer": "below",
    }


def _region(area: RegionArea, theme: Theme) -> dict[str, Any]:
    return {
        "x": area.x0,
        "y": area.y1,
        "xshift": 6,
        "yshift": -2,
        "xanchor": "left",
        "yanchor": "top",
        "text": f"<b>{_shorten(area.region)}</b>" if area.is_named else "region not configured",
        "showarrow": False,
        "font": {"size": 12, "color": theme.text if area.is_named else theme.faint},
    }


def _box(node: ClusterBox, theme: Theme) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": node.x - BOX_WIDTH / 2,
        "y0": node.y - BOX_HEIGHT / 2,
        "x1": node.x + BOX_WIDTH / 2,
        "y1": node.y + BOX_HEIGHT / 2,
        "line": {"color": theme.text, "width": 1.2},
        "fillcolor": theme.panel,
        "layer": "below",
    }


def _draw_arrow(figure: go.Figure, arrow: MirrorArrow, is_first: bool, theme: Theme) -> None:
    mirror = arrow.mirror
    colour, dash = _style(mirror.state, theme)
    figure.add_scatter(
        x=[arrow.x0, arrow.x1],
        y=[arrow.y0, arrow.y1],
        name=f"{mirror.state.sign} {mirror.state.label}",
        legendgroup=mirror.state.value,
        showlegend=is_first,
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 2},
        marker={
            "symbol": ["circle", "arrow"],
            "size": [5, 13],
            "angleref": "previous",
            "color": colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        text=[_hover(mirror)] * 2,
        hovertemplate="%{text}<extra></extra>",
    )


def _label(arrow: MirrorArrow, theme: Theme) -> dict[str, Any]:
    colour, _ = _style(arrow.mirror.state, theme)
    return {
        "x": arrow.label_x,
        "y": arrow.label_y,
        "text": format_mirror_label(arrow.mirror),
        "showarrow": False,
        "xanchor": arrow.label_side,
        "xshift": {"left": 6, "center": 0, "right": -6}[arrow.label_side],
        "bgcolor": theme.panel,
        "borderpad": 2,
        "font": {"size": 12, "color": colour},
    }


def format_mirror_label(mirror: MirrorLag) -> str:
    """Return the label of a mirror's arrow: its sign, its state unless fresh, and its lag."""
    lag = f"≤ {format_seconds(mirror.behind_s_at_most)}" if mirror.behind_s_at_most is not None else ""
    state = "" if mirror.state is MirrorHealth.FRESH else mirror.state.label
    last = "last " if mirror.state is MirrorHealth.UNKNOWN and lag else ""
    parts = [part for part in (state, f"{last}{lag}") if part]
    return f"{mirror.state.sign} {', '.join(parts) or 'lag unknown'}"


def _hover(mirror: MirrorLag) -> str:
    return (
        f"<b>{escape_markup(mirror.name)}</b>: {mirror.state.label}<br>"
        f"behind at most {format_seconds(mirror.behind_s_at_most)}, "
        f"estimated {format_seconds(mirror.behind_s)}<br>"
        f"records behind at most {format_number(mirror.behind_at_most)}, "
        f"estimated {format_number(mirror.behind)}<br>"
        f"no sync for {format_seconds(mirror.silent_s)}"
    )


def _style(state: MirrorHealth, theme: Theme) -> tuple[str, str]:
    return {
        MirrorHealth.FRESH: (theme.good, "solid"),
        MirrorHealth.STALE: (theme.bad, "dash"),
        MirrorHealth.LOOP: (theme.third, "longdashdot"),
        MirrorHealth.UNKNOWN: (theme.faint, "dot"),
    }[state]


def _shorten(name: str) -> str:
    return escape_markup(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
