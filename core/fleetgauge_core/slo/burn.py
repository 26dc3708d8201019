"""Burn rates of a cluster's error budgets, and multiwindow burn-rate alerts (SRE Workbook, chapter 5).

The error ratio of a window is taken over its measured minutes: the share of bad
minutes for latency, the mean of (1 - pooled availability) for availability. The
burn rate is the error ratio divided by 1 - objective: at a burn rate of 1 the
budget lasts exactly its period. An alert fires while the burn rates of its long
and its short window are both at or over its factor. If the coverage of either
window is too low, the alert is frozen: it neither fires nor resolves.

All comparisons use exact fractions, because measured ratios can meet a threshold exactly.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate
from operator import add
from typing import NamedTuple

from fleetgauge_core.fleet.burn_windows import BurnWindow
from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR

#: A window with a lower coverage of its expected broker-minutes freezes its alert.
MIN_WINDOW_COVERAGE = 0.9
#: The share of minutes at or under the latency objective that every tier promises.
LATENCY_OBJECTIVE = 1 - 1 / LATENCY_BUDGET_DIVISOR

#: Unavailability is summed in integer parts of a minute, so that the order of addition does not matter.
_PARTS_PER_MINUTE = 10**15


class ServiceLevelIndicator(StrEnum):
    """What an error budget is kept for."""

    LATENCY = "latency"
    AVAILABILITY = "availability"


class BurnAlertState(StrEnum):
    """Whether a burn-rate alert fires."""

    FIRING = "firing"
    QUIET = "quiet"
    FROZEN = "frozen"
    """Coverage is too low to decide."""


class BurnMinute(NamedTuple):
    """A cluster-minute as burn rates need it.

    ``bad``: whether it was over the latency objective; ``attempted`` and ``succeeded``: its pooled probes;
    ``expected`` and ``measured``: its broker-minutes.
    """

    minute: datetime
    bad: bool
    attempted: int
    succeeded: int
    expected: int
    measured: int


class _Sums(NamedTuple):
    """Sums over minutes; ``unavailable`` is in parts of a minute, ``minutes`` counts measured ones."""

    bad: int = 0
    unavailable: int = 0
    minutes: int = 0
    expected: int = 0
    measured: int = 0


@dataclass(frozen=True, slots=True)
class WindowBurn:
    """The burn rate over one window.

    ``burn`` is None if no minute was measured, ``coverage`` is None if no broker-minute was expected.
    """

    minutes: int
    burn: Fraction | None
    coverage: float | None

    @property
    def is_covered(self) -> bool:
        """Whether the window's coverage is high enough to decide on an alert."""
        return self.coverage is not None and self.coverage >= MIN_WINDOW_COVERAGE


@dataclass(frozen=True, slots=True)
class BurnAlert:
    """The state of one pair of windows for one indicator."""

    indicator: ServiceLevelIndicator
    window: BurnWindow
    long: WindowBurn
    short: WindowBurn
    state: BurnAlertState


class BurnHistory:
    """A cluster's minutes as prefix sums, so that a window of any length is measured in the same time."""

    def __init__(self, minutes: Iterable[BurnMinute]) -> None:
        ascending = sorted(minutes)
        self._minutes = [burn_minute.minute for burn_minute in ascending]
        #: Element i holds the sums of the first i minutes.
        self._prefix_sums = list(accumulate(map(_sums_of_minute, ascending), _add, initial=_Sums()))

    def extend(self, minutes: Iterable[BurnMinute], start: datetime) -> "BurnHistory":
        """Return a history with these minutes appended and without the minutes before ``start``.

        Every added minute must be later than all that the history has.
        """
        added, drop = sorted(minutes), bisect_left(self._minutes, start)
        sums = accumulate(map(_sums_of_minute, added), _add, initial=self._prefix_sums[-1])
        extended = BurnHistory(())
        extended._minutes = [*self._minutes[drop:], *(burn_minute.minute for burn_minute in added)]
        extended._prefix_sums = [*self._prefix_sums[drop:-1], *sums]
        return extended

    def measure_window(
        self, end: datetime, minutes: int, indicator: ServiceLevelIndicator, objective: float
    ) -> WindowBurn:
        """Return the burn rate of the ``minutes`` before ``end``; minutes without a row are not expected."""
        sums = self._sum_between(end - timedelta(minutes=minutes), end)
        return WindowBurn(
            minutes,
            _error_ratio(sums, indicator) / _budget_ratio(objective) if sums.minutes else None,
            sums.measured / sums.expected if sums.expected else None,
        )

    def evaluate_alerts(
        self, end: datetime, windows: Sequence[BurnWindow], availability_objective: float
    ) -> tuple[BurnAlert, ...]:
        """Return the alerts of every pair of windows for both indicators, as of ``end``."""
        objectives = (
            (ServiceLevelIndicator.LATENCY, LATENCY_OBJECTIVE),
            (ServiceLevelIndicator.AVAILABILITY, availability_objective),
        )
        return tuple(
            self._evaluate_alert(end, window, indicator, objective)
            for indicator, objective in objectives
            for window in windows
        )

    def _evaluate_alert(
        self, end: datetime, window: BurnWindow, indicator: ServiceLevelIndicator, objective: float
    ) -> BurnAlert:
        long, short = (
            self.measure_window(end, minutes, indicator, objective)
            for minutes in (window.long_minutes, window.short_minutes)
        )
        return BurnAlert(indicator, window, long, short, _alert_state(long, short, window.factor))

    def _sum_between(self, start: datetime, end: datetime) -> _Sums:
        before, upto = (self._prefix_sums[bisect_left(self._minutes, at)] for at in (start, end))
        return _Sums(*(b - a for a, b in zip(before, upto, strict=True)))


def _sums_of_minute(burn_minute: BurnMinute) -> _Sums:
    if not burn_minute.measured:
        return _Sums(expected=burn_minute.expected)
    failed = burn_minute.attempted - burn_minute.succeeded
    unavailable = failed * _PARTS_PER_MINUTE // burn_minute.attempted
    return _Sums(int(burn_minute.bad), unavailable, 1, burn_minute.expected, burn_minute.measured)


def _add(a: _Sums, b: _Sums) -> _Sums:
    return _Sums(*map(add, a, b))


def _error_ratio(sums: _Sums, indicator: ServiceLevelIndicator) -> Fraction:
    if indicator is ServiceLevelIndicator.LATENCY:
        return Fraction(sums.bad, sums.minutes)
    return Fraction(sums.unavailable, sums.minutes * _PARTS_PER_MINUTE)


def _alert_state(long: WindowBurn, short: WindowBurn, factor: float) -> BurnAlertState:
    if not (long.is_covered and short.is_covered):
        return BurnAlertState.FROZEN
    threshold = _decimal_fraction(factor)
    fires = all(window.burn is not None and window.burn >= threshold for window in (long, short))
    return BurnAlertState.FIRING if fires else BurnAlertState.QUIET


def _budget_ratio(objective: float) -> Fraction:
    return 1 - _decimal_fraction(objective)


def _decimal_fraction(number: float) -> Fraction:
    """Return the fraction that the decimal notation stands for: 0.9995 is 1999/2000."""
    return Fraction(str(number))
