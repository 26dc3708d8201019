"""Nearest-rank quantiles in integers.

q = a/100 of n ascending values is the ceil(a n / 100)-th smallest, computed as (a n + 99) // 100 so that
floating-point rounding never changes a rank.
"""

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Ordered(Protocol):
    """A type whose values can be sorted."""

    def __lt__(self, other: Self, /) -> bool: ...


T = TypeVar("T", bound=Ordered)


def nearest_rank(a: int, n: int) -> int:
    """Return the 1-based nearest rank of the a-th percentile of n values (1 <= a <= 100, n >= 1)."""
    return (a * n + 99) // 100


def quantile(a: int, ascending: Sequence[T]) -> T | None:
    """Return the a-th percentile of an ascending sequence, or None if it is empty."""
    n = len(ascending)
    return ascending[nearest_rank(a, n) - 1] if n else None


def quantile_from_bad_side(a: int, ascending: Sequence[T]) -> T | None:
    """Return the a-th percentile counted from the largest value down, or None of an empty sequence.

    For values of which less is worse, such as availability: a% of the values are at or above it.
    """
    n = len(ascending)
    return ascending[n - nearest_rank(a, n)] if n else None
