"""Bootstrap intervals: they contain the true difference as often as stated, and shift with the values."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.comparison import MedianDifference, compare_groups, compare_pairs

_VALUES = st.lists(st.integers(0, 10**7).map(float), min_size=1, max_size=30)
_PAIRS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=30)
_SHIFTS = st.integers(-(10**6), 10**6)


def _groups(a: list[float], b: list[float]) -> MedianDifference:
    return compare_groups(a, b, Random(1), resamples=200)


def _pairs(pairs: list[tuple[int, int]]) -> MedianDifference:
    return compare_pairs(pairs, Random(1), resamples=200)


def test_a_worked_example_of_groups() -> None:
    compared = compare_groups([40, 42, 44], [30, 31, 32, 33], Random(7))
    assert (compared.median_a, compared.median_b, compared.difference) == (42, 31.5, -10.5)
    assert (compared.clusters_a, compared.clusters_b, compared.has_few_clusters) == (3, 4, True)
    # The medians of resamples differ by at least 40 - 33 and at most 44 - 30.
    assert -14 <= compared.low <= -10.5 <= compared.high <= -7
    assert compared.is_significant


def test_a_worked_example_of_pairs() -> None:
    compared = compare_pairs([(10, 11), (20, 23), (500, 502)], Random(7))
    assert (compared.median_a, compared.median_b, compared.difference) == (20, 23, 2)
    assert (compared.low, compared.high) == (1, 3)


def test_ten_clusters_in_each_group_are_enough_for_an_interval() -> None:
    assert not _groups([1.0] * 10, [2.0] * 10).has_few_clusters
    assert _groups([1.0] * 9, [2.0] * 10).has_few_clusters


@pytest.mark.parametrize("clusters", [11, 30])
def test_the_interval_of_equal_groups_contains_zero_in_95_percent_of_trials(clusters: int) -> None:
    def contains_zero(seed: int) -> bool:
        random = Random(seed)
        a, b = ([random.lognormvariate(10, 0.5) for _ in range(clusters)] for _ in range(2))
        return not compare_groups(a, b, random, resamples=200).is_significant

    # Three standard errors of 300 trials are 3.8%, and the bootstrap interval of a median is slightly wide.
    assert 0.91 <= sum(map(contains_zero, range(300))) / 300 <= 0.995


def test_the_interval_of_unchanged_pairs_contains_zero_in_95_percent_of_trials() -> None:
    def contains_zero(seed: int) -> bool:
        random = Random(seed)
        before = [random.lognormvariate(10, 2) for _ in range(15)]
        pairs = [(value, value + random.gauss(0, 5)) for value in before]
        return not compare_pairs(pairs, random, resamples=200).is_significant

    assert 0.91 <= sum(map(contains_zero, range(300))) / 300 <= 0.995


def test_pairs_detect_a_change_that_groups_cannot() -> None:
    random = Random(3)
    before = [random.lognormvariate(10, 2) for _ in range(15)]
    after = [value - 100 + random.gauss(0, 5) for value in before]
    assert not compare_groups(before, after, random).is_significant
    assert compare_pairs(list(zip(before, after, strict=True)), random).is_significant


@given(_VALUES, _VALUES, _SHIFTS)
def test_a_shift_of_one_group_shifts_the_difference_and_its_interval(
    a: list[float], b: list[float], shift: int
) -> None:
    original, shifted = _groups(a, b), _groups(a, [value + shift for value in b])
    assert (shifted.difference, shifted.low, shifted.high) == (
        original.difference + shift,
        original.low + shift,
        original.high + shift,
    )


@given(_PAIRS, _SHIFTS)
def test_a_shift_of_the_values_after_shifts_the_difference_and_its_interval(
    pairs: list[tuple[int, int]], shift: int
) -> None:
    original, shifted = _pairs(pairs), _pairs([(before, after + shift) for before, after in pairs])
    assert (shifted.difference, shifted.low, shifted.high) == (
        original.difference + shift,
        original.low + shift,
        original.high + shift,
    )


@given(_VALUES, _VALUES)
def test_swapping_the_groups_negates_the_difference(a: list[float], b: list[float]) -> None:
    assert _groups(a, b).difference == -_groups(b, a).difference


@given(_VALUES, _VALUES)
def test_the_same_seed_gives_the_same_interval(a: list[float], b: list[float]) -> None:
    assert _groups(a, b) == _groups(a, b)
    assert _groups(a, b).low <= _groups(a, b).high
