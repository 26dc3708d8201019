"""Regions are drawn at the same places each time, and what a colour says is said again without it."""

from datetime import timedelta
from itertools import combinations, pairwise, permutations
from math import dist
from random import Random

import pytest

from fleetgauge_dashboards.figures.over_time import OverTime
from fleetgauge_dashboards.figures.regions import WORDS, regions, words
from fleetgauge_dashboards.figures.rpo import NAMED, rpo
from fleetgauge_dashboards.figures.theme import DARK, LIGHT, Theme
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.minutes import Grid
from fleetgauge_dashboards.views.mirrors import MirrorState
from fleetgauge_dashboards.views.regions import BOX_HEIGHT, BOX_WIDTH, WIDTH, Area, Arrow, region_map
from fleetgauge_dashboards.views.rpo import Rpo, RpoLine
from tests.browser.recovery_lake import MIRRORS, REGIONS
from tests.unit.dashboards.frames import START, minute
from tests.unit.dashboards.recovery_frames import mirror

both_schemes = pytest.mark.parametrize("look", [LIGHT, DARK])

FOUR = tuple(mirror(*between, state=state) for between, state in zip(MIRRORS, MirrorState, strict=True))


def test_a_map_does_not_depend_on_the_order_of_its_mirrors() -> None:
    shuffled = Random(1).sample(FOUR, 4)
    assert set(region_map(shuffled, REGIONS).arrows) == set(region_map(FOUR, REGIONS).arrows)
    assert region_map(shuffled, REGIONS).areas == region_map(FOUR, REGIONS).areas


def test_clusters_stand_in_their_regions_and_one_of_none_in_its_own() -> None:
    found = region_map((*FOUR, mirror("north", "west")), REGIONS)
    assert {one.region: (one.named, [node.cluster_id for node in one.nodes]) for one in found.areas} == {
        "eu-north": (True, ["north", "north-all"]),
        "eu-south": (True, ["south", "south-all"]),
        "west": (False, ["west"]),
    }


def _overlap(one: Area, other: Area) -> bool:
    return one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1


@pytest.mark.parametrize("clusters", [1, 2, 3])
@pytest.mark.parametrize("number", range(1, 11))
def test_areas_are_apart_and_on_the_sheet(number: int, clusters: int) -> None:
    names = [f"c{n}" for n in range(number * clusters)]
    mirrors = [mirror(*both) for both in pairwise([*names, "c0" if names[1:] else "also c0"])]
    of = {name: f"r{n // clusters}" for n, name in enumerate(names)}
    found = region_map(mirrors, {"also c0": "r0"} | of)
    assert len(found.areas) == number
    assert not any(_overlap(*both) for both in combinations(found.areas, 2))
    for one in found.areas:
        assert 0 <= one.x0 < one.x1 <= WIDTH
        assert 0 <= one.y0 < one.y1 <= found.height


def _led_through(arrow: Arrow, area: Area) -> bool:
    places = [n / 50 for n in range(51)]
    way = [
        (arrow.x0 + part * (arrow.x1 - arrow.x0), arrow.y0 + part * (arrow.y1 - arrow.y0)) for part in places
    ]
    return any(area.x0 < x < area.x1 and area.y0 < y < area.y1 for x, y in way)


@pytest.mark.parametrize("number", range(2, 6))
def test_no_arrow_leads_through_a_third_region(number: int) -> None:
    names = [f"{n}" for n in range(number)]
    mirrors = [mirror(source, destination) for source, destination in permutations(names, 2)]
    found = region_map(mirrors, {name: name for name in names})
    for arrow in found.arrows:
        ends = {arrow.mirror.source, arrow.mirror.destination}
        assert not [one.region for one in found.areas if one.region not in ends and _led_through(arrow, one)]


def test_an_arrow_goes_from_beside_its_source_to_beside_its_destination() -> None:
    found = region_map(FOUR, REGIONS)
    nodes = {node.cluster_id: node for area in found.areas for node in area.nodes}
    for arrow in found.arrows:
        for x, y, name in (
            (arrow.x0, arrow.y0, arrow.mirror.source),
            (arrow.x1, arrow.y1, arrow.mirror.destination),
        ):
            node = nodes[name]
            away = max(abs(x - node.x) - BOX_WIDTH / 2, abs(y - node.y) - BOX_HEIGHT / 2)
            assert away == pytest.approx(5)


def test_two_that_run_against_each_other_run_side_by_side() -> None:
    there, back = region_map((mirror("a", "b"), mirror("b", "a")), {}).arrows
    assert dist((there.words_x, there.words_y), (back.words_x, back.words_y)) > 100
    assert abs(there.y0 - back.y1) > 10


@both_schemes
def test_each_state_has_a_dash_and_a_sign_of_its_own(look: Theme) -> None:
    figure = regions(region_map(FOUR, REGIONS), look)
    assert len({trace.line.dash for trace in figure.data}) == len(MirrorState)
    assert {trace.name for trace in figure.data} == {f"{one.sign} {one}" for one in MirrorState}
    assert all(trace.marker.symbol[-1] == "arrow" for trace in figure.data)


def test_the_words_at_an_arrow_say_how_far_it_is_behind() -> None:
    assert words(mirror()) == "● ≤ 15 s"
    assert words(mirror(state=MirrorState.STALE, behind_s_at_most=730.0)) == "▲ stands still, ≤ 12 min 10 s"
    assert words(mirror(state=MirrorState.LOOP)) == "↻ goes round, ≤ 15 s"
    assert words(mirror(state=MirrorState.UNKNOWN)) == "◌ nobody knows, last ≤ 15 s"
    assert words(mirror(state=MirrorState.UNKNOWN, behind_s_at_most=None)) == "◌ nobody knows"
    assert words(mirror(behind_s_at_most=None)) == "● not known how far"


def test_every_mirror_has_words_until_they_would_crowd() -> None:
    texts = [note.text for note in regions(region_map(FOUR, REGIONS), LIGHT).layout.annotations]
    assert {words(one) for one in FOUR} <= set(texts)
    many = [mirror(f"c{n}", "all") for n in range(WORDS)] + [mirror("late", "all", state=MirrorState.STALE)]
    texts = [note.text for note in regions(region_map(many, {}), LIGHT).layout.annotations]
    assert [text for text in texts if "≤" in text] == [words(many[-1])]


def test_a_name_is_no_markup() -> None:
    figure = regions(region_map((mirror("<b>a</b>", "b" * 60),), {}), LIGHT)
    texts = {note.text for note in figure.layout.annotations}
    assert "&lt;b&gt;a&lt;/b&gt;" in texts
    assert f"{'b' * 21}…" in texts
    assert "<b>&lt;b&gt;a&lt;/b&gt; to b" in figure.data[0].text[0]


def test_without_mirrors_the_map_says_so() -> None:
    figure = regions(region_map((), {}), LIGHT)
    assert [note.text for note in figure.layout.annotations] == ["No mirror is told of."]


STEPS = Grid(START, 1, 4)
OVER = OverTime(Span(START, minute(4)), Times("UTC"), (), "r")
LINES = (
    RpoLine("a", "b", (0.0, None, 30.0, 400.0), (None, None, 2.0, 3.0)),
    RpoLine("c", "d", (5.0, None, 5.0, 5.0), (None,) * 4),
)


@both_schemes
def test_what_is_known_at_most_is_solid_and_the_estimate_thin_and_dashed(look: Theme) -> None:
    traces = {trace.name: trace for trace in rpo(Rpo(STEPS, LINES, 300.0), OVER, look).data}
    at_most, estimate = traces["a to b"], traces["a to b, estimate"]
    assert (at_most.line.dash, estimate.line.dash) == (None, "dash")
    assert at_most.line.width > estimate.line.width
    assert at_most.line.color == estimate.line.color
    assert at_most.marker.symbol != traces["c to d"].marker.symbol
    assert "c to d, estimate" not in traces


def test_a_gap_is_a_break_and_what_is_less_than_a_second_is_told_as_it_is() -> None:
    traces = {trace.name: trace for trace in rpo(Rpo(STEPS, LINES, None), OVER, LIGHT).data}
    assert list(traces["a to b"].y) == [1.0, None, 30.0, 400.0]
    assert list(traces["a to b"].customdata) == ["0 s", "–", "30 s", "6 min 40 s"]
    assert traces["a to b"].line.shape == "hv"
    assert not traces["a to b"].connectgaps
    assert list(traces["not measured"].base) == ["2026-03-02 10:01:00"]


def test_the_objective_is_named_and_within_sight() -> None:
    figure = rpo(Rpo(STEPS, LINES[1:], 3_600.0), OVER, LIGHT)
    assert [note.text for note in figure.layout.annotations] == ["objective<br>1 h"]
    assert 10 ** figure.layout.yaxis.range[1] > 3_600
    assert not rpo(Rpo(STEPS, LINES, None), OVER, LIGHT).layout.annotations


def test_of_many_mirrors_those_furthest_behind_are_named() -> None:
    lines = tuple(RpoLine(f"m{n:02}", "all", (float(n),) * 4, (None,) * 4) for n in range(20))
    figure = rpo(Rpo(STEPS, lines, None), OVER, LIGHT)
    named = [trace.name for trace in figure.data if trace.showlegend]
    assert named == [f"m{n:02} to all" for n in range(20 - NAMED, 20)]


def test_of_nothing_there_is_a_figure() -> None:
    empty = rpo(Rpo(STEPS, (), None), OVER, LIGHT)
    assert list(empty.layout.xaxis.range) == [
        "2026-03-02 10:00:00",
        f"{START + timedelta(minutes=4):%Y-%m-%d %H:%M:%S}",
    ]
