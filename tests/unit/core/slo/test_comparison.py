"""Intervals that hold the truth as often as they say, and move with what is measured."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.comparison import Difference, compare_groups, compare_pairs

_VALUES = st.lists(st.integers(0, 10**7).map(float), min_size=1, max_size=30)
_PAIRS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=30)
_SHIFTS = st.integers(-(10**6), 10**6)


def _groups(a: list[float], b: list[float]) -> Difference:
    return compare_groups(a, b, Random(1), resamples=200)


def _pairs(pairs: list[tuple[int, int]]) -> Difference:
    return compare_pairs(pairs, Random(1), resamples=200)


def test_a_worked_example() -> None:
    found = compare_groups([40, 42, 44], [30, 31, 32, 33], Random(7))
    assert (found.median_a, found.median_b, found.difference) == (42, 31.5, -10.5)
    assert (found.clusters_a, found.clusters_b, found.means_little) == (3, 4, True)
    # No resample can be nearer than 40 to 33, or farther than 44 to 30.
    assert -14 <= found.low <= -10.5 <= found.high <= -7
    assert found.is_told_apart


def test_a_worked_example_of_pairs() -> None:
    found = compare_pairs([(10, 11), (20, 23), (500, 502)], Random(7))
    assert (found.median_a, found.median_b, found.difference) == (20, 23, 2)
    assert (found.low, found.high) == (1, 3)


def test_ten_clusters_on_each_side_make_an_interval() -> None:
    assert not _groups([1.0] * 10, [2.0] * 10).means_little
    assert _groups([1.0] * 9, [2.0] * 10).means_little


@pytest.mark.parametrize("clusters", [11, 30])
def test_equal_groups_give_an_interval_around_zero_as_often_as_it_says(clusters: int) -> None:
    def holds_zero(seed: int) -> bool:
        random = Random(seed)
        a, b = ([random.lognormvariate(10, 0.5) for _ in range(clusters)] for _ in range(2))
        return not compare_groups(a, b, random, resamples=200).is_told_apart

    # 95%; three standard errors of 300 trials are 3.8%, and the bootstrap of a median is a little wide.
    assert 0.91 <= sum(map(holds_zero, range(300))) / 300 <= 0.995


def test_pairs_that_did_not_change_give_an_interval_around_zero_as_often_as_it_says() -> None:
    def holds_zero(seed: int) -> bool:
        random = Random(seed)
        before = [random.lognormvariate(10, 2) for _ in range(15)]
        pairs = [(value, value + random.gauss(0, 5)) for value in before]
        return not compare_pairs(pairs, random, resamples=200).is_told_apart

    assert 0.91 <= sum(map(holds_zero, range(300))) / 300 <= 0.995


def test_pairs_see_a_change_that_groups_cannot() -> None:
    random = Random(3)
    before = [random.lognormvariate(10, 2) for _ in range(15)]
    after = [value - 100 + random.gauss(0, 5) for value in before]
    assert not compare_groups(before, after, random).is_told_apart
    assert compare_pairs(list(zip(before, after, strict=True)), random).is_told_apart


@given(_VALUES, _VALUES, _SHIFTS)
def test_a_shift_of_one_group_shifts_the_difference_and_its_interval(
    a: list[float], b: list[float], shift: int
) -> None:
    still, moved = _groups(a, b), _groups(a, [value + shift for value in b])
    assert (moved.difference, moved.low, moved.high) == (
        still.difference + shift,
        still.low + shift,
        still.high + shift,
    )


@given(_PAIRS, _SHIFTS)
def test_a_shift_of_the_weeks_after_shifts_the_change_and_its_interval(
    pairs: list[tuple[int, int]], shift: int
) -> None:
    still, moved = _pairs(pairs), _pairs([(before, after + shift) for before, after in pairs])
    assert (moved.difference, moved.low, moved.high) == (
        still.difference + shift,
        still.low + shift,
        still.high + shift,
    )


@given(_VALUES, _VALUES)
def test_exchanging_the_groups_turns_the_difference_around(a: list[float], b: list[float]) -> None:
    assert _groups(a, b).difference == -_groups(b, a).difference


@given(_VALUES, _VALUES)
def test_an_interval_is_one_and_the_same_for_one_seed(a: list[float], b: list[float]) -> None:
    assert _groups(a, b) == _groups(a, b)
    assert _groups(a, b).low <= _groups(a, b).high
