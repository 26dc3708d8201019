"""Quantiles by nearest rank, in integers."""

from collections.abc import Sequence
from typing import TypeVar

Number = TypeVar("Number", int, float)


def nearest_rank(percent: int, count: int) -> int:
    """Return the 1-based nearest rank of a quantile: (percent * count + 99) // 100."""
    return (percent * count + 99) // 100


def quantile(values: Sequence[Number], percent: int) -> Number | None:
    """Return the value of the quantile's rank from the smallest on; None without values."""
    if not values:
        return None
    return sorted(values)[nearest_rank(percent, len(values)) - 1]


def quantile_from_bad_side(values: Sequence[Number], percent: int) -> Number | None:
    """Return the value of the quantile's rank from the largest on, for values that are better if larger."""
    if not values:
        return None
    return sorted(values, reverse=True)[nearest_rank(percent, len(values)) - 1]
