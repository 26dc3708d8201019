"""How fast a cluster spends its error budgets, and which burn alerts that makes fire.

The error ratio of a window is taken over its measured minutes: bad minutes for
latency, the sum of (1 - pooled availability) for availability. Its burn is that
ratio over what the objective allows, 1 - objective: at a burn of 1 the budget
lasts exactly its period. An alert fires while the burn of its long and of its
short window are both at or over its factor. Where one of them was not seen well
enough, nothing is known: the alert is frozen, which neither fires nor resolves.

Everything is decided on exact numbers, for thresholds are met exactly.
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

#: A window that saw less of the broker-minutes that it expected freezes its alert.
WINDOW_COVERAGE = 0.9
#: The share of minutes at or under the latency objective that every tier promises.
LATENCY_OBJECTIVE = 1 - 1 / LATENCY_BUDGET_DIVISOR

#: Unavailable minutes are added up in whole parts, so that the order of adding changes nothing.
_PARTS = 10**15


class Indicator(StrEnum):
    LATENCY = "latency"
    AVAILABILITY = "availability"


class State(StrEnum):
    FIRING = "firing"
    QUIET = "quiet"
    FROZEN = "frozen"


class BurnMinute(NamedTuple):
    """A cluster-minute: over its latency objective or not, its probes, its broker-minutes."""

    minute: datetime
    bad: bool
    attempted: int
    succeeded: int
    expected: int
    measured: int


class _Sums(NamedTuple):
    """Sums over minutes; ``lost`` is in parts of a minute."""

    bad: int = 0
    lost: int = 0
    minutes: int = 0
    expected: int = 0
    measured: int = 0


@dataclass(frozen=True, slots=True)
class WindowBurn:
    """What a window shows: burn is None if nothing was measured, coverage if nothing was expected."""

    minutes: int
    burn: Fraction | None
    coverage: float | None

    @property
    def seen(self) -> bool:
        return self.coverage is not None and self.coverage >= WINDOW_COVERAGE


@dataclass(frozen=True, slots=True)
class BurnAlert:
    """One pair of windows over one indicator, judged."""

    indicator: Indicator
    window: BurnWindow
    long: WindowBurn
    short: WindowBurn
    state: State


class BurnHistory:
    """A cluster's minutes as prefix sums: a window of any length costs the same."""

    def __init__(self, minutes: Iterable[BurnMinute]) -> None:
        ascending = sorted(minutes)
        self._at = [one.minute for one in ascending]
        self._until = list(accumulate(map(_counted, ascending), _added, initial=_Sums()))

    def extended(self, minutes: Iterable[BurnMinute], start: datetime) -> "BurnHistory":
        """With these, of which each is later than all that it has, and without those before ``start``."""
        later, drop = sorted(minutes), bisect_left(self._at, start)
        sums = accumulate(map(_counted, later), _added, initial=self._until[-1])
        extended = BurnHistory(())
        extended._at = [*self._at[drop:], *(one.minute for one in later)]
        extended._until = [*self._until[drop:-1], *sums]
        return extended

    def window(self, end: datetime, minutes: int, indicator: Indicator, objective: float) -> WindowBurn:
        """The ``minutes`` before ``end``; a minute that has no row was not expected."""
        sums = self._sums(end - timedelta(minutes=minutes), end)
        return WindowBurn(
            minutes,
            _error_ratio(sums, indicator) / _allowed(objective) if sums.minutes else None,
            sums.measured / sums.expected if sums.expected else None,
        )

    def alerts(
        self, end: datetime, windows: Sequence[BurnWindow], availability_objective: float
    ) -> tuple[BurnAlert, ...]:
        """Every pair of windows over both indicators, as they stand at ``end``."""
        objectives = (
            (Indicator.LATENCY, LATENCY_OBJECTIVE),
            (Indicator.AVAILABILITY, availability_objective),
        )
        return tuple(
            self._alert(end, window, indicator, objective)
            for indicator, objective in objectives
            for window in windows
        )

    def _alert(self, end: datetime, window: BurnWindow, indicator: Indicator, objective: float) -> BurnAlert:
        long, short = (
            self.window(end, minutes, indicator, objective)
            for minutes in (window.long_minutes, window.short_minutes)
        )
        return BurnAlert(indicator, window, long, short, _state(long, short, window.factor))

    def _sums(self, start: datetime, end: datetime) -> _Sums:
        before, upto = (self._until[bisect_left(self._at, at)] for at in (start, end))
        return _Sums(*(b - a for a, b in zip(before, upto, strict=True)))


def _counted(one: BurnMinute) -> _Sums:
    if not one.measured:
        return _Sums(expected=one.expected)
    lost = (one.attempted - one.succeeded) * _PARTS // one.attempted
    return _Sums(int(one.bad), lost, 1, one.expected, one.measured)


def _added(a: _Sums, b: _Sums) -> _Sums:
    return _Sums(*map(add, a, b))


def _error_ratio(sums: _Sums, indicator: Indicator) -> Fraction:
    if indicator is Indicator.LATENCY:
        return Fraction(sums.bad, sums.minutes)
    return Fraction(sums.lost, sums.minutes * _PARTS)


def _state(long: WindowBurn, short: WindowBurn, factor: float) -> State:
    if not (long.seen and short.seen):
        return State.FROZEN
    fires = all(one.burn is not None and one.burn >= _as_written(factor) for one in (long, short))
    return State.FIRING if fires else State.QUIET


def _allowed(objective: float) -> Fraction:
    return 1 - _as_written(objective)


def _as_written(number: float) -> Fraction:
    """0.9995 is 1999/2000, not the binary fraction beside it."""
    return Fraction(str(number))
