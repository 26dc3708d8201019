"""What a change cost: its losses beyond those that the same hours of earlier weeks had.

Motivation: whether a change cost anything cannot be read from the minutes during it alone, because some of
them would have been bad without it.

Approach: the expected losses are the median of the same hours of the last four weeks, the controls. How far a
time without the change is from such a median is learned from those weeks themselves: every window of the same
length there is compared with the same hours of the other weeks. The shortest interval that holds 95% of these
differences is that of the cost. It needs no assumption about how losses are distributed or follow each other.
"""

from dataclasses import dataclass
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

MINUTES_PER_WEEK = 7 * 24 * 60
CONTROL_WEEKS = 4
#: A control of which fewer minutes were measured says too little.
MIN_COVERAGE = 0.9
#: Weeks of which the same hours were measured; a median of fewer is no expectation.
MIN_CONTROLS = 2
#: The share of differences that the interval holds.
CONFIDENCE = 0.95
#: Fewer differences have no interval.
_MIN_DIFFERENCES = 20
#: Windows that are compared overlap by half: more would repeat each other.
_STEPS_PER_WINDOW = 2
#: What counts as nothing: one minute, or this share of the window's minutes.
_NEGLIGIBLE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """The losses of a window in minutes, beyond what was to be expected, with their 95% interval.

    ``observed`` are all losses of the window, ``expected`` the median of its ``controls``. ``low`` and
    ``high`` are None if too little was measured for an interval.
    """

    measured_minutes: int
    observed: float
    expected: float
    controls: tuple[float, ...]
    low: float | None
    high: float | None

    @property
    def cost(self) -> float:
        """The best estimate; negative if the window lost less than expected."""
        return self.observed - self.expected

    @property
    def verdict(self) -> str:
        """``cost`` or ``gained``: zero is outside the interval; ``nothing``: all of it is negligible."""
        if self.low is None or self.high is None:
            return "unknown"
        if self.low > 0:
            return "cost"
        if self.high < 0:
            return "gained"
        negligible = max(1.0, _NEGLIGIBLE_SHARE * self.measured_minutes)
        return "nothing" if self.high <= negligible else "unclear"


@dataclass(frozen=True, slots=True, eq=False)
class LossSeries:
    """The losses of consecutive minutes from ``first`` on, summed up from there; see ``build``."""

    first: int
    losses: NDArray[np.float64]
    measured: NDArray[np.float64]

    @classmethod
    def build(cls, minutes: ArrayLike, losses: ArrayLike) -> Self:
        """Return the series of measured minutes and the loss of each, from 0 to 1.

        Minutes are numbered, for instance since 1970, and are in any order.
        """
        numbers, values = np.asarray(minutes, np.int64), np.asarray(losses, np.float64)
        if not len(numbers):
            return cls(0, np.zeros(1), np.zeros(1))
        first = int(numbers.min())
        lost, measured = (np.zeros(int(numbers.max()) - first + 1) for _ in range(2))
        lost[numbers - first], measured[numbers - first] = values, 1
        return cls(first, *(np.concatenate([[0.0], np.cumsum(each)]) for each in (lost, measured)))

    def sum(self, starts: ArrayLike, length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the losses and the measured minutes of windows of one length."""
        begins = np.asarray(starts, np.int64) - self.first
        last = len(self.losses) - 1
        low, high = np.clip(begins, 0, last), np.clip(begins + length, 0, last)
        return self.losses[high] - self.losses[low], self.measured[high] - self.measured[low]

    def scaled_sum(self, starts: ArrayLike, length: int, minutes: float) -> NDArray[np.float64]:
        """Return the losses of windows as if so many minutes were measured; NaN where too few were."""
        losses, measured = self.sum(starts, length)
        is_enough = (measured > 0) & (measured >= MIN_COVERAGE * minutes)
        return np.where(is_enough, losses * minutes / np.maximum(measured, 1), np.nan)


def estimate_cost(series: LossSeries, window: range) -> ChangeCost | None:
    """Return the cost of a window; the ``series`` needs to reach back four weeks before it.

    Returns: None if nothing of the window was measured, or fewer than two of its controls were, or it is
    longer than a week, so that its controls would overlap it.
    """
    if not 0 < len(window) <= MINUTES_PER_WEEK:
        return None
    length = len(window)
    observed, measured = (float(value) for value in series.sum(window.start, length))
    if not measured:
        return None
    weeks = MINUTES_PER_WEEK * np.arange(1, CONTROL_WEEKS + 1)
    controls = series.scaled_sum(window.start - weeks, length, measured)
    controls = controls[~np.isnan(controls)]
    if len(controls) < MIN_CONTROLS:
        return None
    expected = float(np.median(controls))
    differences = _collect_differences(series, window, measured)
    cost, low, high = observed - expected, None, None
    if len(differences) >= _MIN_DIFFERENCES:
        least, most = _find_shortest_interval(differences)
        low, high = cost - most, cost - least
    return ChangeCost(int(measured), observed, expected, tuple(controls.tolist()), low, high)


def _collect_differences(series: LossSeries, window: range, measured: float) -> NDArray[np.float64]:
    """Return how far each window of the control weeks is from the median of the same hours of the others."""
    length = len(window)
    first = window.start - CONTROL_WEEKS * MINUTES_PER_WEEK
    offsets = np.arange(0, MINUTES_PER_WEEK - length + 1, max(1, length // _STEPS_PER_WINDOW))
    starts = first + offsets[:, None] + MINUTES_PER_WEEK * np.arange(CONTROL_WEEKS)
    values = series.scaled_sum(starts, length, measured)
    values = values[(~np.isnan(values)).sum(axis=1) > MIN_CONTROLS]
    if not len(values):
        return np.zeros(0)
    # Of all differences only their set is wanted, so each row may be in the order of its values, NaN last.
    ordered = np.sort(values, axis=1)
    differences = [
        ordered[:, rank] - _find_medians(np.delete(ordered, rank, axis=1)) for rank in range(CONTROL_WEEKS)
    ]
    every: NDArray[np.float64] = np.concatenate(differences)
    return np.compress(~np.isnan(every), every)


def _find_medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each row's numbers, which ascend and precede its NaN, as numpy.nanmedian does."""
    # That one takes ten times as long for rows of a few values.
    at, count = np.arange(len(rows)), (~np.isnan(rows)).sum(axis=1)
    medians: NDArray[np.float64] = (rows[at, (count - 1) // 2] + rows[at, count // 2]) / 2
    return medians


def _find_shortest_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the shortest interval that holds the share CONFIDENCE of the values.

    Of several the one that is nearest to zero.
    """
    ordered = np.sort(values)
    inside = ceil(CONFIDENCE * len(ordered))
    low, high = ordered[: len(ordered) - inside + 1], ordered[inside - 1 :]
    shortest = np.flatnonzero(high - low == (high - low).min())
    best = shortest[np.abs(low[shortest] + high[shortest]).argmin()]
    return float(low[best]), float(high[best])
