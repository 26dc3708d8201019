"""What a change cost: its losses beyond those that the same hours of earlier weeks had.

Motivation: whether a change cost anything cannot be read from the minutes during it alone, because some of
them would have been bad without it.

Approach: the expected losses are the median of the same hours of the last four weeks, the controls. How far a
time without the change is from such a median is learned from those weeks themselves: every window of the same
length there is compared with the same hours of the other weeks. The shortest interval that holds 95% of these
differences is that of the cost. It needs no assumption about how losses are distributed or follow each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from statistics import median

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


def estimate_cost(losses: Mapping[int, float], window: range) -> ChangeCost | None:
    """Return the cost of a window, given the loss of each measured minute, from 0 to 1.

    Minutes are numbered, for instance since 1970; ``losses`` need to reach back four weeks before the window.
    Returns: None if nothing of the window was measured, or fewer than two of its controls were, or it is
    longer than a week, so that its controls would overlap it.
    """
    if len(window) > MINUTES_PER_WEEK:
        return None
    series = _Series(losses, window.start - CONTROL_WEEKS * MINUTES_PER_WEEK, window.stop)
    length = len(window)
    observed, measured = series.sum(window.start, length)
    if not measured:
        return None
    controls = [
        control
        for week in range(1, CONTROL_WEEKS + 1)
        if (control := series.scaled_sum(window.start - week * MINUTES_PER_WEEK, length, measured))
        is not None
    ]
    if len(controls) < MIN_CONTROLS:
        return None
    expected = median(controls)
    differences = _collect_differences(series, window, measured)
    cost, low, high = observed - expected, None, None
    if len(differences) >= _MIN_DIFFERENCES:
        least, most = _find_shortest_interval(differences)
        low, high = cost - most, cost - least
    return ChangeCost(measured, observed, expected, tuple(controls), low, high)


class _Series:
    """Sums of losses and of measured minutes over any window, from ``first`` to ``end``."""

    def __init__(self, losses: Mapping[int, float], first: int, end: int) -> None:
        self._first = first
        minutes = range(first, end)
        self._losses = (0.0, *accumulate(losses.get(minute, 0.0) for minute in minutes))
        self._measured = (0, *accumulate(int(minute in losses) for minute in minutes))

    def sum(self, start: int, length: int) -> tuple[float, int]:
        """Return the losses and the measured minutes of a window."""
        begin = start - self._first
        end = begin + length
        return self._losses[end] - self._losses[begin], self._measured[end] - self._measured[begin]

    def scaled_sum(self, start: int, length: int, minutes: int) -> float | None:
        """Return the losses of a window as if so many minutes were measured; None if too few were."""
        loss, measured = self.sum(start, length)
        return loss * minutes / measured if measured and measured >= MIN_COVERAGE * minutes else None


def _collect_differences(series: _Series, window: range, measured: int) -> list[float]:
    """Return how far each window of the control weeks is from the median of the same hours of the others."""
    length = len(window)
    first = window.start - CONTROL_WEEKS * MINUTES_PER_WEEK
    differences: list[float] = []
    for offset in range(0, MINUTES_PER_WEEK - length + 1, max(1, length // _STEPS_PER_WINDOW)):
        starts = (first + offset + week * MINUTES_PER_WEEK for week in range(CONTROL_WEEKS))
        values = [
            value for start in starts if (value := series.scaled_sum(start, length, measured)) is not None
        ]
        if len(values) > MIN_CONTROLS:
            differences += (
                value - median(values[:position] + values[position + 1 :])
                for position, value in enumerate(values)
            )
    return differences


def _find_shortest_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the shortest interval that holds the share CONFIDENCE of the values."""
    ordered = sorted(values)
    inside = ceil(CONFIDENCE * len(ordered))
    return min(
        ((ordered[start], ordered[start + inside - 1]) for start in range(len(ordered) - inside + 1)),
        key=lambda bounds: (bounds[1] - bounds[0], abs(bounds[0] + bounds[1])),
    )
