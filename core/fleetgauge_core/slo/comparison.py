"""Do two groups of clusters differ, or the same clusters before and after? Medians and a bootstrap.

Clusters are resampled, never weeks: the weeks of one cluster are alike, and would make an interval look
surer than it is. The median of an even number is the middle of two, so that exchanging the groups turns
the difference around.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

RESAMPLES = 2_000
#: Of 1000 resamples so many lie outside the interval on each side: 95% are inside.
_OUTSIDE_PER_MILLE = 25
#: Medians of fewer clusters hardly vary among resamples, whatever the truth is.
CLUSTERS_FOR_AN_INTERVAL = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """Both medians, how far the second is above the first, and the 95% interval of that."""

    median_a: float
    median_b: float
    difference: float
    low: float
    high: float
    clusters_a: int
    clusters_b: int

    @property
    def means_little(self) -> bool:
        """Too few clusters for the interval to mean much."""
        return min(self.clusters_a, self.clusters_b) < CLUSTERS_FOR_AN_INTERVAL

    @property
    def is_told_apart(self) -> bool:
        return self.low > 0 or self.high < 0


def compare_groups(
    a: Sequence[float], b: Sequence[float], random: Random, resamples: int = RESAMPLES
) -> Difference:
    """One value a cluster, neither group empty; the difference of the medians, b - a."""

    def resampled() -> float:
        return median(random.choices(b, k=len(b))) - median(random.choices(a, k=len(a)))

    low, high = _interval(resampled, resamples)
    return Difference(median(a), median(b), median(b) - median(a), low, high, len(a), len(b))


def compare_pairs(
    pairs: Sequence[tuple[float, float]], random: Random, resamples: int = RESAMPLES
) -> Difference:
    """A (before, after) a cluster, at least one; the median of what each cluster changed by."""
    before, after = zip(*pairs, strict=True)
    changes = [second - first for first, second in pairs]
    low, high = _interval(lambda: median(random.choices(changes, k=len(changes))), resamples)
    return Difference(median(before), median(after), median(changes), low, high, len(pairs), len(pairs))


def _interval(resampled: Callable[[], float], resamples: int) -> tuple[float, float]:
    """The percentile bootstrap's."""
    ascending = sorted(resampled() for _ in range(resamples))
    outside = resamples * _OUTSIDE_PER_MILLE // 1000
    return ascending[outside], ascending[-1 - outside]
