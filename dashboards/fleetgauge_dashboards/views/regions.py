"""Where regions, their clusters and the mirrors between them are drawn; the same for the same fleet.

Places are in pixels of a sheet, from its left and its foot. Regions stand on an ellipse, so that lines hardly
lead through a third one; their clusters one above the other, or side by side where lines come from above or
below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import copysign, cos, hypot, pi, sin
from typing import Literal, NamedTuple

from fleetgauge_dashboards.views.mirrors import MirrorNow

WIDTH = 1300
#: A cluster's box, the room for it in its region, and its region's name.
BOX_WIDTH, BOX_HEIGHT = 170, 30
_ROW, _COLUMN = 92, 206
_SIDE_BY_SIDE = 110
_TITLE, _EDGE = 30, 8
#: So far up or down the ellipse lines come from there; of more regions none has room.
_STEEP, _WIDE_OF = 0.8, 8
#: Room between two regions, one beside the other and one above the other, and at the sheet's edge.
_BETWEEN, _ABOVE, _BORDER = 24, 70, 6
#: Of so many regions that they still are not apart, some overlap.
_TALLEST = 2_400
#: From a box to where an arrow begins or ends, and how far beside the straight way it runs.
_GAP, _ASIDE = 5, 9
#: Where along an arrow its words stand: nearer to its source, as two that cross do so in the middle. Those of
#: a short one stand over or under it.
_WORDS_AT = 0.3
_SHORT, _OVER = 200, 28


class _Place(NamedTuple):
    """The middle of a region, and whether its clusters stand side by side."""

    x: float
    y: float
    is_wide: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A cluster, by the middle of its box."""

    cluster_id: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Area:
    """A region around its clusters; ``named`` False: nobody said in which one its cluster is."""

    region: str
    named: bool
    x0: float
    y0: float
    x1: float
    y1: float
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A mirror, from beside its source to beside its destination, and where its words stand."""

    mirror: MirrorNow
    x0: float
    y0: float
    x1: float
    y1: float
    words_x: float
    words_y: float
    words_side: Literal["left", "center", "right"]
    """Which side of the words stands there."""


@dataclass(frozen=True, slots=True)
class RegionMap:
    """All of it, on a sheet of that height."""

    height: float
    areas: tuple[Area, ...]
    arrows: tuple[Arrow, ...]


def region_map(mirrors: Sequence[MirrorNow], regions: Mapping[str, str]) -> RegionMap:
    """The clusters between which mirrors are, each in its region or, where that is not known, in its own."""
    members: dict[tuple[str, bool], list[str]] = {}
    for cluster in sorted({one for mirror in mirrors for one in (mirror.source, mirror.destination)}):
        members.setdefault((regions.get(cluster, cluster), cluster in regions), []).append(cluster)
    tall = _TITLE + _ROW * max(map(len, members.values()), default=1) + _EDGE
    height = tall + 2 * _BORDER
    areas = _areas(members, height, tall)
    while not _are_apart(areas) and height < _TALLEST:
        height += _BETWEEN
        areas = _areas(members, height, tall)
    nodes = {node.cluster_id: node for area in areas for node in area.nodes}
    return RegionMap(height, areas, tuple(_arrows(mirrors, nodes)))


def _areas(members: Mapping[tuple[str, bool], Sequence[str]], height: float, tall: float) -> tuple[Area, ...]:
    places = _places(len(members), height, tall)
    return tuple(
        _area(region, named, members[region, named], place)
        for (region, named), place in zip(sorted(members), places, strict=True)
    )


def _are_apart(areas: Sequence[Area]) -> bool:
    return not any(
        one.x0 < other.x1 + _BETWEEN
        and other.x0 < one.x1 + _BETWEEN
        and one.y0 < other.y1 + _ABOVE
        and other.y0 < one.y1 + _ABOVE
        for one, other in combinations(areas, 2)
    )


def _places(number: int, height: float, tall: float) -> list[_Place]:
    """Of each area, from the left one on clockwise."""
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


def _area(region: str, named: bool, clusters: Sequence[str], place: _Place) -> Area:
    columns = 2 if place.is_wide and len(clusters) == 2 else 1
    wide = _COLUMN + (columns - 1) * (BOX_WIDTH + _SIDE_BY_SIDE)
    tall = _TITLE + _ROW * (len(clusters) // columns) + _EDGE
    left, top = place.x - wide / 2, place.y + tall / 2
    nodes = tuple(
        Node(
            cluster,
            left + _COLUMN / 2 + (number % columns) * (BOX_WIDTH + _SIDE_BY_SIDE),
            top - _TITLE - _ROW * (number // columns + 0.5),
        )
        for number, cluster in enumerate(clusters)
    )
    return Area(region, named, left, top - tall, left + wide, top, nodes)


def _arrows(mirrors: Sequence[MirrorNow], nodes: Mapping[str, Node]) -> Iterator[Arrow]:
    ways = {(mirror.source, mirror.destination) for mirror in mirrors}
    for mirror in mirrors:
        source, destination = nodes[mirror.source], nodes[mirror.destination]
        along_x, along_y = destination.x - source.x, destination.y - source.y
        length = hypot(along_x, along_y) or 1.0
        ux, uy = along_x / length, along_y / length
        # To the right of its own way, where there is one in the other direction: they run side by side.
        aside = _ASIDE if (mirror.destination, mirror.source) in ways else 0
        beside = (aside * uy, -aside * ux)
        begins, ends = _to_the_edge(beside, (ux, uy)), _to_the_edge(beside, (-ux, -uy))
        x0, y0 = source.x + beside[0] + begins * ux, source.y + beside[1] + begins * uy
        x1, y1 = destination.x + beside[0] - ends * ux, destination.y + beside[1] - ends * uy
        is_upright, is_short = abs(ux) < 0.1, abs(x1 - x0) < _SHORT and abs(uy) < 0.1
        at = 0.5 if is_upright or is_short else _WORDS_AT
        words_x, words_y = x0 + at * (x1 - x0), y0 + at * (y1 - y0)
        side: Literal["left", "center", "right"] = "center"
        if is_upright:
            # Beside it, and towards the middle of the sheet.
            side = "left" if x0 < WIDTH / 2 else "right"
        elif is_short:
            words_y += copysign(_OVER, ux)
        yield Arrow(mirror, x0, y0, x1, y1, words_x, words_y, side)


def _to_the_edge(begin: tuple[float, float], way: tuple[float, float]) -> float:
    """From that place in a box, seen from its middle, that way, until a little beyond the box."""
    halves = (BOX_WIDTH / 2 + _GAP, BOX_HEIGHT / 2 + _GAP)
    return min(
        (half - at * copysign(1, part)) / abs(part)
        for half, at, part in zip(halves, begin, way, strict=True)
        if abs(part) > 1e-9
    )
