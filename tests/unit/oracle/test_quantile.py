"""Nearest-rank quantiles of the oracle."""

import pytest

from tests.oracle.quantile import nearest_rank, quantile, quantile_from_bad_side


@pytest.mark.parametrize(
    ("percent", "count", "expected"),
    [
        (99, 1, 1),
        (99, 99, 99),
        (99, 100, 99),
        (99, 101, 100),
        (99, 200, 198),
        (99, 10_080, 9_980),
        (50, 1, 1),
        (50, 4, 2),
        (50, 5, 3),
        (90, 10, 9),
        (90, 11, 10),
    ],
)
def test_the_nearest_rank_is_the_smallest_that_covers_the_share(
    percent: int, count: int, expected: int
) -> None:
    assert nearest_rank(percent, count) == expected


def test_a_quantile_does_not_depend_on_the_order_of_the_values() -> None:
    assert quantile([30, 10, 40, 20], 50) == 20
    assert quantile([30, 10, 40, 20], 99) == 40


def test_the_p99_of_a_hundred_values_ignores_the_largest_one() -> None:
    assert quantile([7] * 99 + [10_000_000], 99) == 7
    assert quantile([7] * 98 + [10_000_000] * 2, 99) == 10_000_000


def test_from_the_bad_side_the_p99_of_a_hundred_values_is_the_second_smallest() -> None:
    assert quantile_from_bad_side([n / 100 for n in range(1, 101)], 99) == 0.02


def test_from_the_bad_side_the_median_of_four_values_is_the_third_smallest() -> None:
    assert quantile_from_bad_side([0.1, 0.2, 0.3, 0.4], 50) == 0.3


def test_from_the_bad_side_the_p99_of_few_values_is_the_smallest() -> None:
    assert quantile_from_bad_side([0.9, 1.0, 0.8], 99) == 0.8


def test_from_the_bad_side_a_quantile_is_the_negated_quantile_of_the_negated() -> None:
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    for percent in (50, 90, 99):
        negated = quantile([-value for value in values], percent)
        assert negated is not None
        assert quantile_from_bad_side(values, percent) == -negated


def test_no_values_have_no_quantile() -> None:
    assert quantile([], 99) is None
    assert quantile_from_bad_side([], 99) is None
