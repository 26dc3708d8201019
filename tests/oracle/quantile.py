"""The one definition of a quantile: nearest rank, in integers."""

from collections.abc import Sequence
from typing import TypeVar

Number = TypeVar("Number", int, float)


def rank(percent: int, count: int) -> int:
    """The 1-based rank of a quantile: (percent * count + 99) // 100."""
    return (percent * count + 99) // 100


def quantile(values: Sequence[Number], percent: int) -> Number | None:
    """The rank-th smallest value; None without values."""
    if not values:
        return None
    return sorted(values)[rank(percent, len(values)) - 1]


def quantile_from_bad_side(values: Sequence[Number], percent: int) -> Number | None:
    """The rank-th largest value, for what is better the larger it is; None without values."""
    if not values:
        return None
    return sorted(values, reverse=True)[rank(percent, len(values)) - 1]
