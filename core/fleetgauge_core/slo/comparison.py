"""Comparison of two groups of clusters, or of the same clusters before and after, by bootstrapped medians.

Clusters are resampled, not weeks: the weeks of one cluster are correlated, so resampling them would make the
interval too narrow. The median of an even number of values is the mean of the middle two, so that swapping
the groups only changes the sign of the difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

RESAMPLES = 2_000
#: Of 1000 resamples, this many lie outside the interval on each side: 95% are inside.
_OUTSIDE_PER_MILLE = 25
#: Medians of fewer clusters hardly vary between resamples, so the interval would look too certain.
MIN_INTERVAL_CLUSTERS = 10


@dataclass(frozen=True, slots=True)
class MedianDifference:
    """Two medians, how far the second is above the first, and that difference's 95% confidence interval."""

    median_a: float
    median_b: float
    difference: float
    low: float
    high: float
    clusters_a: int
    clusters_b: int

    @property
    def has_few_clusters(self) -> bool:
        """Whether there are too few clusters for the interval to be meaningful."""
        return min(self.clusters_a, self.clusters_b) < MIN_INTERVAL_CLUSTERS

    @property
    def is_significant(self) -> bool:
        """Whether the 95% confidence interval excludes zero."""
        return self.low > 0 or self.high < 0


def compare_groups(
    a: Sequence[float], b: Sequence[float], random: Random, resamples: int = RESAMPLES
) -> MedianDifference:
    """Compare two groups with one value per cluster; the difference is median(b) - median(a).

    Neither group may be empty.
    """

    def resample_difference() -> float:
        return median(random.choices(b, k=len(b))) - median(random.choices(a, k=len(a)))

    low, high = _bootstrap_interval(resample_difference, resamples)
    return MedianDifference(median(a), median(b), median(b) - median(a), low, high, len(a), len(b))


def compare_pairs(
    pairs: Sequence[tuple[float, float]], random: Random, resamples: int = RESAMPLES
) -> MedianDifference:
    """Compare one (before, after) pair per cluster; the difference is the median of after - before.

    There must be at least one pair.
    """
    before, after = zip(*pairs, strict=True)
    differences = [second - first for first, second in pairs]

    def resample_median() -> float:
        return median(random.choices(differences, k=len(differences)))

    low, high = _bootstrap_interval(resample_median, resamples)
    return MedianDifference(
        median(before), median(after), median(differences), low, high, len(pairs), len(pairs)
    )


def _bootstrap_interval(resample: Callable[[], float], resamples: int) -> tuple[float, float]:
    """Return the percentile bootstrap's interval."""
    ascending = sorted(resample() for _ in range(resamples))
    outside = resamples * _OUTSIDE_PER_MILLE // 1000
    return ascending[outside], ascending[-1 - outside]
