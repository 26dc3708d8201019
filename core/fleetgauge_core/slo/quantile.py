"""Nearest-rank quantiles in integers.

q = a/100 of n ascending values is the ceil(a n / 100)-th smallest, computed
as (a n + 99) // 100 so that no float ever decides a rank.
"""

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Ordered(Protocol):
    def __lt__(self, other: Self, /) -> bool: ...


T = TypeVar("T", bound=Ordered)


def rank(a: int, n: int) -> int:
    """The 1-based nearest rank of the a-th percentile of n values (1 <= a <= 100, n >= 1)."""
    return (a * n + 99) // 100


def quantile(a: int, ascending: Sequence[T]) -> T | None:
    """The a-th percentile of an ascending sequence; None of nothing."""
    n = len(ascending)
    return ascending[rank(a, n) - 1] if n else None


def quantile_from_bad_side(a: int, ascending: Sequence[T]) -> T | None:
    """The a-th percentile counted from the low end, for values of which less is worse."""
    n = len(ascending)
    return ascending[n - rank(a, n)] if n else None
