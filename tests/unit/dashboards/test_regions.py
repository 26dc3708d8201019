"""Regions have fixed places on the map, and every colour is repeated by a dash or a sign."""

from datetime import timedelta
from itertools import combinations, pairwise, permutations
from math import dist
from random import Random

import pytest

from fleetgauge_dashboards.figures.regions import MAX_LABELLED_MIRRORS, format_mirror_label, plot_region_map
from fleetgauge_dashboards.figures.rpo import MAX_NAMED_MIRRORS, plot_rpo
from fleetgauge_dashboards.figures.theme import DARK, LIGHT, Theme
from fleetgauge_dashboards.figures.time_series import ChartContext
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.minutes import TimeGrid
from fleetgauge_dashboards.views.mirrors import MirrorHealth
from fleetgauge_dashboards.views.regions import (
    BOX_HEIGHT,
    BOX_WIDTH,
    WIDTH,
    MirrorArrow,
    RegionArea,
    lay_out_region_map,
)
from fleetgauge_dashboards.views.rpo import RpoTimeline, RpoTimelines
from tests.browser.recovery_lake import MIRRORS, REGIONS
from tests.unit.dashboards.frames import START, minute
from tests.unit.dashboards.recovery_frames import mirror

both_schemes = pytest.mark.parametrize("theme", [LIGHT, DARK])

FOUR = tuple(mirror(*ends, state=state) for ends, state in zip(MIRRORS, MirrorHealth, strict=True))


def test_a_map_does_not_depend_on_the_order_of_its_mirrors() -> None:
    shuffled = Random(1).sample(FOUR, 4)
    assert set(lay_out_region_map(shuffled, REGIONS).arrows) == set(lay_out_region_map(FOUR, REGIONS).arrows)
    assert lay_out_region_map(shuffled, REGIONS).areas == lay_out_region_map(FOUR, REGIONS).areas


def test_clusters_are_drawn_in_their_regions_and_others_in_their_own_area() -> None:
    region_map = lay_out_region_map((*FOUR, mirror("north", "west")), REGIONS)
    assert {
        area.region: (area.is_named, [node.cluster_id for node in area.nodes]) for area in region_map.areas
    } == {
        "eu-north": (True, ["north", "north-all"]),
        "eu-south": (True, ["south", "south-all"]),
        "west": (False, ["west"]),
    }


def _overlap(first: RegionArea, second: RegionArea) -> bool:
    return first.x0 < second.x1 and second.x0 < first.x1 and first.y0 < second.y1 and second.y0 < first.y1


@pytest.mark.parametrize("clusters", [1, 2, 3])
@pytest.mark.parametrize("number", range(1, 11))
def test_areas_do_not_overlap_and_fit_on_the_sheet(number: int, clusters: int) -> None:
    names = [f"c{n}" for n in range(number * clusters)]
    mirrors = [mirror(*both) for both in pairwise([*names, "c0" if names[1:] else "also c0"])]
    region_of = {name: f"r{n // clusters}" for n, name in enumerate(names)}
    region_map = lay_out_region_map(mirrors, {"also c0": "r0"} | region_of)
    assert len(region_map.areas) == number
    assert not any(_overlap(*both) for both in combinations(region_map.areas, 2))
    for area in region_map.areas:
        assert 0 <= area.x0 < area.x1 <= WIDTH
        assert 0 <= area.y0 < area.y1 <= region_map.height


def _crosses(arrow: MirrorArrow, area: RegionArea) -> bool:
    places = [n / 50 for n in range(51)]
    points = [
        (arrow.x0 + part * (arrow.x1 - arrow.x0), arrow.y0 + part * (arrow.y1 - arrow.y0)) for part in places
    ]
    return any(area.x0 < x < area.x1 and area.y0 < y < area.y1 for x, y in points)


@pytest.mark.parametrize("number", range(2, 6))
def test_no_arrow_crosses_a_third_region(number: int) -> None:
    names = [f"{n}" for n in range(number)]
    mirrors = [mirror(source, destination) for source, destination in permutations(names, 2)]
    region_map = lay_out_region_map(mirrors, {name: name for name in names})
    for arrow in region_map.arrows:
        ends = {arrow.mirror.source, arrow.mirror.destination}
        assert not [
            area.region for area in region_map.areas if area.region not in ends and _crosses(arrow, area)
        ]


def test_an_arrow_goes_from_beside_its_source_to_beside_its_destination() -> None:
    region_map = lay_out_region_map(FOUR, REGIONS)
    nodes = {node.cluster_id: node for area in region_map.areas for node in area.nodes}
    for arrow in region_map.arrows:
        for x, y, name in (
            (arrow.x0, arrow.y0, arrow.mirror.source),
            (arrow.x1, arrow.y1, arrow.mirror.destination),
        ):
            node = nodes[name]
            distance = max(abs(x - node.x) - BOX_WIDTH / 2, abs(y - node.y) - BOX_HEIGHT / 2)
            assert distance == pytest.approx(5)


def test_arrows_in_opposite_directions_run_side_by_side() -> None:
    forward, backward = lay_out_region_map((mirror("a", "b"), mirror("b", "a")), {}).arrows
    assert dist((forward.label_x, forward.label_y), (backward.label_x, backward.label_y)) > 100
    assert abs(forward.y0 - backward.y1) > 10


@both_schemes
def test_each_state_has_its_own_dash_and_sign(theme: Theme) -> None:
    figure = plot_region_map(lay_out_region_map(FOUR, REGIONS), theme)
    assert len({trace.line.dash for trace in figure.data}) == len(MirrorHealth)
    assert {trace.name for trace in figure.data} == {f"{state.sign} {state.label}" for state in MirrorHealth}
    assert all(trace.marker.symbol[-1] == "arrow" for trace in figure.data)


def test_an_arrows_label_shows_the_mirrors_state_and_lag() -> None:
    assert format_mirror_label(mirror()) == "● ≤ 15 s"
    assert (
        format_mirror_label(mirror(state=MirrorHealth.STALE, behind_s_at_most=730.0))
        == "▲ stalled, ≤ 12 min 10 s"
    )
    assert format_mirror_label(mirror(state=MirrorHealth.LOOP)) == "↻ looping, ≤ 15 s"
    assert format_mirror_label(mirror(state=MirrorHealth.UNKNOWN)) == "◌ unknown, last ≤ 15 s"
    assert format_mirror_label(mirror(state=MirrorHealth.UNKNOWN, behind_s_at_most=None)) == "◌ unknown"
    assert format_mirror_label(mirror(behind_s_at_most=None)) == "● lag unknown"


def test_every_mirror_is_labelled_unless_there_are_too_many() -> None:
    texts = [
        note.text for note in plot_region_map(lay_out_region_map(FOUR, REGIONS), LIGHT).layout.annotations
    ]
    assert {format_mirror_label(lag) for lag in FOUR} <= set(texts)
    many = [mirror(f"c{n}", "all") for n in range(MAX_LABELLED_MIRRORS)] + [
        mirror("late", "all", state=MirrorHealth.STALE)
    ]
    texts = [note.text for note in plot_region_map(lay_out_region_map(many, {}), LIGHT).layout.annotations]
    assert [text for text in texts if "≤" in text] == [format_mirror_label(many[-1])]


def test_markup_in_a_name_is_escaped() -> None:
    figure = plot_region_map(lay_out_region_map((mirror("<b>a</b>", "b" * 60),), {}), LIGHT)
    texts = {note.text for note in figure.layout.annotations}
    assert "&lt;b&gt;a&lt;/b&gt;" in texts
    assert f"{'b' * 21}…" in texts
    assert "<b>&lt;b&gt;a&lt;/b&gt; to b" in figure.data[0].text[0]


def test_without_mirrors_the_map_shows_a_note() -> None:
    figure = plot_region_map(lay_out_region_map((), {}), LIGHT)
    assert [note.text for note in figure.layout.annotations] == ["No mirror observed."]


STEPS = TimeGrid(START, 1, 4)
OVER = ChartContext(Span(START, minute(4)), TimeFormat("UTC"), (), "r")
LINES = (
    RpoTimeline("a", "b", (0.0, None, 30.0, 400.0), (None, None, 2.0, 3.0)),
    RpoTimeline("c", "d", (5.0, None, 5.0, 5.0), (None,) * 4),
)


@both_schemes
def test_the_upper_bound_is_solid_and_the_estimate_thin_and_dashed(theme: Theme) -> None:
    traces = {trace.name: trace for trace in plot_rpo(RpoTimelines(STEPS, LINES, 300.0), OVER, theme).data}
    at_most, estimate = traces["a to b"], traces["a to b, estimate"]
    assert (at_most.line.dash, estimate.line.dash) == (None, "dash")
    assert at_most.line.width > estimate.line.width
    assert at_most.line.color == estimate.line.color
    assert at_most.marker.symbol != traces["c to d"].marker.symbol
    assert "c to d, estimate" not in traces


def test_a_gap_interrupts_the_line_and_values_under_a_second_keep_their_text() -> None:
    traces = {trace.name: trace for trace in plot_rpo(RpoTimelines(STEPS, LINES, None), OVER, LIGHT).data}
    assert list(traces["a to b"].y) == [1.0, None, 30.0, 400.0]
    assert list(traces["a to b"].customdata) == ["0 s", "–", "30 s", "6 min 40 s"]
    assert traces["a to b"].line.shape == "hv"
    assert not traces["a to b"].connectgaps
    assert list(traces["not measured"].base) == ["2026-03-02 10:01:00"]


def test_the_objective_is_labelled_and_inside_the_axis_range() -> None:
    figure = plot_rpo(RpoTimelines(STEPS, LINES[1:], 3_600.0), OVER, LIGHT)
    assert [note.text for note in figure.layout.annotations] == ["objective<br>1 h"]
    assert 10 ** figure.layout.yaxis.range[1] > 3_600
    assert not plot_rpo(RpoTimelines(STEPS, LINES, None), OVER, LIGHT).layout.annotations


def test_with_many_mirrors_only_those_with_the_largest_lag_are_labelled() -> None:
    lines = tuple(RpoTimeline(f"m{n:02}", "all", (float(n),) * 4, (None,) * 4) for n in range(20))
    figure = plot_rpo(RpoTimelines(STEPS, lines, None), OVER, LIGHT)
    named = [trace.name for trace in figure.data if trace.showlegend]
    assert named == [f"m{n:02} to all" for n in range(20 - MAX_NAMED_MIRRORS, 20)]


def test_a_figure_can_be_drawn_without_mirrors() -> None:
    empty = plot_rpo(RpoTimelines(STEPS, (), None), OVER, LIGHT)
    assert list(empty.layout.xaxis.range) == [
        "2026-03-02 10:00:00",
        f"{START + timedelta(minutes=4):%Y-%m-%d %H:%M:%S}",
    ]
