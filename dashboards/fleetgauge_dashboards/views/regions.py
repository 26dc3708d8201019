"""Lay out regions, their clusters and the mirrors between them; equal fleets get equal maps.

Coordinates are pixels from the left and the bottom of a sheet. Regions lie on an ellipse, so that arrows
rarely cross a third region. The clusters of a region are above each other, or side by side where arrows
arrive from above or below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import copysign, cos, hypot, pi, sin
from typing import Literal, NamedTuple

from fleetgauge_dashboards.views.mirrors import MirrorLag

WIDTH = 1300
#: The size of a cluster's box, then its row and column in the region, then the region's title.
BOX_WIDTH, BOX_HEIGHT = 170, 30
_ROW, _COLUMN = 92, 206
_SIDE_BY_SIDE = 110
_TITLE, _EDGE = 30, 8
#: Above this sine of the angle arrows arrive from above or below; with more regions there is no room.
_STEEP, _WIDE_OF = 0.8, 8
#: Space between regions side by side, between regions above each other, and at the edge of the sheet.
_BETWEEN, _ABOVE, _BORDER = 24, 70, 6
#: The sheet stops growing here; with very many regions some overlap.
_TALLEST = 2_400
#: The distance from a box to an arrow's end, and of an arrow from the straight line.
_GAP, _ASIDE = 5, 9
#: A label's place along its arrow: near the source, because arrows cross in the middle. The label of a short
#: arrow is above or below it.
_LABEL_AT = 0.3
_SHORT, _OVER = 200, 28


class _Place(NamedTuple):
    """The middle of a region, and whether its clusters are side by side."""

    x: float
    y: float
    is_wide: bool


@dataclass(frozen=True, slots=True)
class ClusterBox:
    """A cluster's box, given by its middle."""

    cluster_id: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class RegionArea:
    """A region around its clusters; ``is_named`` is False where the cluster's region is not configured."""

    region: str
    is_named: bool
    x0: float
    y0: float
    x1: float
    y1: float
    nodes: tuple[ClusterBox, ...]


@dataclass(frozen=True, slots=True)
class MirrorArrow:
    """A mirror's arrow from beside its source to beside its destination, and the place of its label."""

    mirror: MirrorLag
    x0: float
    y0: float
    x1: float
    y1: float
    label_x: float
    label_y: float
    label_side: Literal["left", "center", "right"]
    """The side of the label that is at ``label_x``."""


@dataclass(frozen=True, slots=True)
class RegionMap:
    """The whole map on a sheet of that height."""

    height: float
    areas: tuple[RegionArea, ...]
    arrows: tuple[MirrorArrow, ...]


def lay_out_region_map(mirrors: Sequence[MirrorLag], regions: Mapping[str, str]) -> RegionMap:
    """Return the map of all clusters that mirrors connect.

    A cluster is placed in its region, or alone in an unnamed area where its region is not configured.
    """
    members: dict[tuple[str, bool], list[str]] = {}
    for cluster in sorted({end for mirror in mirrors for end in (mirror.source, mirror.destination)}):
        members.setdefault((regions.get(cluster, cluster), cluster in regions), []).append(cluster)
    tall = _TITLE + _ROW * max(map(len, members.values()), default=1) + _EDGE
    height = tall + 2 * _BORDER
    areas = _areas(members, height, tall)
    while not _are_apart(areas) and height < _TALLEST:
        height += _BETWEEN
        areas = _areas(members, height, tall)
    nodes = {node.cluster_id: node for area in areas for node in area.nodes}
    return RegionMap(height, areas, tuple(_arrows(mirrors, nodes)))


def _areas(
    members: Mapping[tuple[str, bool], Sequence[str]], height: float, tall: float
) -> tuple[RegionArea, ...]:
    places = _places(len(members), height, tall)
    return tuple(
        _area(region, is_named, members[region, is_named], place)
        for (region, is_named), place in zip(sorted(members), places, strict=True)
    )


def _are_apart(areas: Sequence[RegionArea]) -> bool:
    return not any(
        first.x0 < second.x1 + _BETWEEN
        and second.x0 < first.x1 + _BETWEEN
        and first.y0 < second.y1 + _ABOVE
        and second.y0 < first.y1 + _ABOVE
        for first, second in combinations(areas, 2)
    )


def _places(number: int, height: float, tall: float) -> list[_Place]:
    """Return the place of each area, clockwise from the left."""
    if number == 1:
        return [_Place(WIDTH / 2, height / 2, False)]
    across, up = (WIDTH - _COLUMN) / 2 - _BORDER, (height - tall) / 2 - _BORDER
    turns = [pi - 2 * pi * place / number for place in range(number)]
    return [
        _Place(
            WIDTH / 2 + across * cos(turn),
            height / 2 + up * sin(turn),
            is_wide=number <= _WIDE_OF and abs(sin(turn)) > _STEEP,
        )
        for turn in turns
    ]


def _area(region: str, is_named: bool, clusters: Sequence[str], place: _Place) -> RegionArea:
    columns = 2 if place.is_wide and len(clusters) == 2 else 1
    width = _COLUMN + (columns - 1) * (BOX_WIDTH + _SIDE_BY_SIDE)
    height = _TITLE + _ROW * (len(clusters) // columns) + _EDGE
    left, top = place.x - width / 2, place.y + height / 2
    nodes = tuple(
        ClusterBox(
            cluster,
            left + _COLUMN / 2 + (number % columns) * (BOX_WIDTH + _SIDE_BY_SIDE),
            top - _TITLE - _ROW * (number // columns + 0.5),
        )
        for number, cluster in enumerate(clusters)
    )
    return RegionArea(region, is_named, left, top - height, left + width, top, nodes)


def _arrows(mirrors: Sequence[MirrorLag], nodes: Mapping[str, ClusterBox]) -> Iterator[MirrorArrow]:
    directions = {(mirror.source, mirror.destination) for mirror in mirrors}
    for mirror in mirrors:
        source, destination = nodes[mirror.source], nodes[mirror.destination]
        along_x, along_y = destination.x - source.x, destination.y - source.y
        length = hypot(along_x, along_y) or 1.0
        ux, uy = along_x / length, along_y / length
        # Two arrows in opposite directions run side by side, each to the right of the straight line.
        aside = _ASIDE if (mirror.destination, mirror.source) in directions else 0
        offset = (aside * uy, -aside * ux)
        start_gap, end_gap = _distance_to_edge(offset, (ux, uy)), _distance_to_edge(offset, (-ux, -uy))
        x0, y0 = source.x + offset[0] + start_gap * ux, source.y + offset[1] + start_gap * uy
        x1, y1 = destination.x + offset[0] - end_gap * ux, destination.y + offset[1] - end_gap * uy
        is_upright, is_short = abs(ux) < 0.1, abs(x1 - x0) < _SHORT and abs(uy) < 0.1
        label_at = 0.5 if is_upright or is_short else _LABEL_AT
        label_x, label_y = x0 + label_at * (x1 - x0), y0 + label_at * (y1 - y0)
        side: Literal["left", "center", "right"] = "center"
        if is_upright:
            # The label is beside the arrow, towards the middle of the sheet.
            side = "left" if x0 < WIDTH / 2 else "right"
        elif is_short:
            label_y += copysign(_OVER, ux)
        yield MirrorArrow(mirror, x0, y0, x1, y1, label_x, label_y, side)


def _distance_to_edge(place: tuple[float, float], direction: tuple[float, float]) -> float:
    """Return the distance from ``place`` to just outside the box, in ``direction``.

    ``place`` is relative to the box's middle.
    """
    half_sizes = (BOX_WIDTH / 2 + _GAP, BOX_HEIGHT / 2 + _GAP)
    return min(
        (half_size - coordinate * copysign(1, component)) / abs(component)
        for half_size, coordinate, component in zip(half_sizes, place, direction, strict=True)
        if abs(component) > 1e-9
    )
