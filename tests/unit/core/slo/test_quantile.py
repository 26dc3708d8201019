"""Nearest-rank quantiles."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.quantile import nearest_rank, quantile, quantile_from_bad_side

PERCENT = st.integers(1, 100)
ASCENDING = st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=300).map(sorted)


def _quantile_by_definition(percent: int, ascending: list[int]) -> int:
    """Return the smallest value with at least that share of values at or below it, as the definition says."""
    share = Fraction(percent, 100)
    return next(
        value
        for value in ascending
        if Fraction(sum(other <= value for other in ascending), len(ascending)) >= share
    )


@given(PERCENT, ASCENDING)
def test_a_quantile_is_the_smallest_value_with_that_share_at_or_below_it(
    percent: int, ascending: list[int]
) -> None:
    assert quantile(percent, ascending) == _quantile_by_definition(percent, ascending)


@given(PERCENT, ASCENDING)
def test_a_quantile_from_the_bad_side_is_the_negated_quantile_of_negated_values(
    percent: int, ascending: list[int]
) -> None:
    negated = sorted(-value for value in ascending)
    assert quantile_from_bad_side(percent, ascending) == -_quantile_by_definition(percent, negated)


@given(PERCENT, st.integers(1, 10**12))
def test_a_nearest_rank_is_the_ceiling_of_the_share_and_within_bounds(percent: int, n: int) -> None:
    assert nearest_rank(percent, n) == -(-Fraction(percent * n, 100) // 1)
    assert 1 <= nearest_rank(percent, n) <= n


@pytest.mark.parametrize(
    ("percent", "n", "expected"),
    [
        (99, 1, 1),
        (99, 100, 99),
        (99, 101, 100),
        (99, 10_080, 9_980),
        (50, 4, 2),
        (50, 5, 3),
        (100, 7, 7),
        (1, 100, 1),
    ],
)
def test_worked_examples_of_nearest_ranks(percent: int, n: int, expected: int) -> None:
    assert nearest_rank(percent, n) == expected


@given(PERCENT)
def test_an_empty_sequence_has_no_quantile(percent: int) -> None:
    assert quantile(percent, ()) is None
    assert quantile_from_bad_side(percent, ()) is None
