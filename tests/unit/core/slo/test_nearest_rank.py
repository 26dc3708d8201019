from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side, rank

PERCENT = st.integers(1, 100)
ASCENDING = st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=300).map(sorted)


def _smallest_that_covers(percent: int, ascending: list[int]) -> int:
    """By the definition: the smallest value with at least that share at or below it."""
    share = Fraction(percent, 100)
    return next(v for v in ascending if Fraction(sum(o <= v for o in ascending), len(ascending)) >= share)


@given(PERCENT, ASCENDING)
def test_a_quantile_is_the_smallest_value_that_covers_the_share(percent: int, ascending: list[int]) -> None:
    assert quantile(percent, ascending) == _smallest_that_covers(percent, ascending)


@given(PERCENT, ASCENDING)
def test_from_the_bad_side_is_the_negative_of_the_negatives_quantile(
    percent: int, ascending: list[int]
) -> None:
    negated = sorted(-v for v in ascending)
    assert quantile_from_bad_side(percent, ascending) == -_smallest_that_covers(percent, negated)


@given(PERCENT, st.integers(1, 10**12))
def test_a_rank_is_the_shares_ceiling_and_lies_within_the_values(percent: int, n: int) -> None:
    assert rank(percent, n) == -(-Fraction(percent * n, 100) // 1)
    assert 1 <= rank(percent, n) <= n


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
def test_worked_ranks(percent: int, n: int, expected: int) -> None:
    assert rank(percent, n) == expected


@given(PERCENT)
def test_nothing_has_no_quantile(percent: int) -> None:
    assert quantile(percent, ()) is None
    assert quantile_from_bad_side(percent, ()) is None
