"""Regions with their clusters, and the mirrors between them with how far each is behind."""

from typing import Any

import plotly.graph_objects as go

from fleetgauge_dashboards.figures.theme import Theme, blank, literal
from fleetgauge_dashboards.units import NOTHING, seconds
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState
from fleetgauge_dashboards.views.regions import (
    BOX_HEIGHT,
    BOX_WIDTH,
    WIDTH,
    Area,
    Arrow,
    Node,
    RegionMap,
)

#: Before it is known how tall it is.
HEIGHT = 280
_LEGEND = 24
#: Of more mirrors only those that are not fresh have words; hovering tells the rest.
WORDS = 24
#: What fits into a box.
_LONGEST = 22


def regions(model: RegionMap, look: Theme) -> go.Figure:
    """A dash and a sign say again what a colour says."""
    figure = blank(look, round(model.height) + _LEGEND, "regions")
    figure.update_layout(
        margin={"l": 0, "r": 0, "t": _LEGEND, "b": 0},
        hovermode="closest",
        dragmode=False,
        legend={"itemclick": False, "itemdoubleclick": False},
    )
    figure.update_xaxes(range=[0, WIDTH], visible=False, fixedrange=True)
    figure.update_yaxes(range=[0, model.height], visible=False, fixedrange=True)
    for state in MirrorState:
        for place, arrow in enumerate(one for one in model.arrows if one.mirror.state is state):
            _draw_arrow(figure, arrow, place == 0, look)
    nodes = [node for area in model.areas for node in area.nodes]
    told = [
        one for one in model.arrows if len(model.arrows) <= WORDS or one.mirror.state is not MirrorState.FRESH
    ]
    # All at once: one by one, plotly looks at each again for every other.
    figure.update_layout(
        shapes=[*(_area(one, look) for one in model.areas), *(_box(one, look) for one in nodes)],
        annotations=[
            *(_region(one, look) for one in model.areas),
            *({"x": one.x, "y": one.y, "text": _short(one.cluster_id), "showarrow": False} for one in nodes),
            *(_label(one, look) for one in told),
            *(() if model.arrows else (_nothing(model, look),)),
        ],
    )
    return figure


def _nothing(model: RegionMap, look: Theme) -> dict[str, Any]:
    return {
        "x": WIDTH / 2,
        "y": model.height / 2,
        "text": "No mirror is told of.",
        "showarrow": False,
        "font": {"color": look.faint},
    }


def _area(area: Area, look: Theme) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": area.x0,
        "y0": area.y0,
        "x1": area.x1,
        "y1": area.y1,
        "line": {"color": look.faint, "width": 1, "dash": "solid" if area.named else "dot"},
        "fillcolor": look.grid,
        "layer": "below",
    }


def _region(area: Area, look: Theme) -> dict[str, Any]:
    return {
        "x": area.x0,
        "y": area.y1,
        "xshift": 6,
        "yshift": -2,
        "xanchor": "left",
        "yanchor": "top",
        "text": f"<b>{_short(area.region)}</b>" if area.named else "region not given",
        "showarrow": False,
        "font": {"size": 12, "color": look.text if area.named else look.faint},
    }


def _box(node: Node, look: Theme) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": node.x - BOX_WIDTH / 2,
        "y0": node.y - BOX_HEIGHT / 2,
        "x1": node.x + BOX_WIDTH / 2,
        "y1": node.y + BOX_HEIGHT / 2,
        "line": {"color": look.text, "width": 1.2},
        "fillcolor": look.panel,
        "layer": "below",
    }


def _draw_arrow(figure: go.Figure, arrow: Arrow, is_first: bool, look: Theme) -> None:
    mirror = arrow.mirror
    colour, dash = _style(mirror.state, look)
    figure.add_scatter(
        x=[arrow.x0, arrow.x1],
        y=[arrow.y0, arrow.y1],
        name=f"{mirror.state.sign} {mirror.state}",
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


def _label(arrow: Arrow, look: Theme) -> dict[str, Any]:
    colour, _ = _style(arrow.mirror.state, look)
    return {
        "x": arrow.words_x,
        "y": arrow.words_y,
        "text": words(arrow.mirror),
        "showarrow": False,
        "xanchor": arrow.words_side,
        "xshift": {"left": 6, "center": 0, "right": -6}[arrow.words_side],
        "bgcolor": look.panel,
        "borderpad": 2,
        "font": {"size": 12, "color": colour},
    }


def words(mirror: MirrorNow) -> str:
    """What stands at its arrow."""
    behind = f"≤ {seconds(mirror.behind_s_at_most)}" if mirror.behind_s_at_most is not None else ""
    said = {MirrorState.FRESH: "", MirrorState.UNKNOWN: str(MirrorState.UNKNOWN)}.get(
        mirror.state, str(mirror.state)
    )
    last = "last " if mirror.state is MirrorState.UNKNOWN and behind else ""
    parts = [one for one in (said, f"{last}{behind}") if one]
    return f"{mirror.state.sign} {', '.join(parts) or 'not known how far'}"


def _hover(mirror: MirrorNow) -> str:
    return (
        f"<b>{literal(mirror.name)}</b>: {mirror.state}<br>"
        f"behind at most {seconds(mirror.behind_s_at_most)}, estimated {seconds(mirror.behind_s)}<br>"
        f"records behind at most {_records(mirror.behind_at_most)}, estimated {_records(mirror.behind)}<br>"
        f"silent for {seconds(mirror.silent_s)}"
    )


def _records(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _style(state: MirrorState, look: Theme) -> tuple[str, str]:
    return {
        MirrorState.FRESH: (look.good, "solid"),
        MirrorState.STALE: (look.bad, "dash"),
        MirrorState.LOOP: (look.third, "longdashdot"),
        MirrorState.UNKNOWN: (look.faint, "dot"),
    }[state]


def _short(name: str) -> str:
    return literal(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
