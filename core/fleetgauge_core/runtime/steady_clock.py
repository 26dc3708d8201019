"""The wall clock of a process whose durations must be right: no step of the machine's clock moves it.

The machine's clock is read once; from then on the time that has passed is added. A step is logged in one
line. A clock that was wrong when the process began, and was set right since, would stay wrong: so a step can
be adopted, when others confirm it or when it has lasted.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleetgauge_core.runtime.uptime import uptime_ns

_log = logging.getLogger("fleetgauge.clock")

#: Services that keep a clock right slew smaller differences, and so do not step it.
MIN_STEP = timedelta(seconds=2)
#: A wrong step has been noticed and undone by then; a right one is adopted.
LASTING_STEP = timedelta(hours=1)


def read_wall_clock() -> datetime:
    """Return the machine's time as an aware UTC datetime."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A moment on both clocks, and the step that has been logged since, with its moment."""

    wall: datetime
    uptime_ns: int
    step: timedelta = timedelta(0)
    stepped_ns: int = 0


class SteadyClock:
    """Wall time that moves with the time that passes, and with nothing else.

    ``adopts_after``: how long a step must last to be adopted; None if only ``adopt_step`` adopts it.
    Threads may share it.
    """

    def __init__(
        self,
        adopts_after: timedelta | None = LASTING_STEP,
        wall: Callable[[], datetime] = read_wall_clock,
        clock_ns: Callable[[], int] = uptime_ns,
    ) -> None:
        self._wall = wall
        self._clock_ns = clock_ns
        self._adopts_after = adopts_after
        self._lock = threading.Lock()
        self._anchor = _Anchor(wall(), clock_ns())

    def now(self) -> datetime:
        """Return the time."""
        with self._lock:
            return self._look()

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""
        return round(self.now().timestamp() * 1000)

    @property
    def step(self) -> timedelta:
        """How far the machine's clock has stepped ahead of this one (negative: back); zero if it has not."""
        with self._lock:
            self._look()
            return self._anchor.step

    def adopt_step(self) -> timedelta:
        """Follow the machine's clock, and return by how far this one moves."""
        with self._lock:
            self._look()
            return self._adopt()

    def _look(self) -> datetime:
        """Return the time; log a step that begins or ends, and adopt one that has lasted."""
        anchor, now_ns = self._anchor, self._clock_ns()
        now = anchor.wall + timedelta(microseconds=(now_ns - anchor.uptime_ns) // 1000)
        step = self._wall() - now
        if abs(step - anchor.step) >= MIN_STEP:
            self._anchor = _Anchor(anchor.wall, anchor.uptime_ns, _round(step), now_ns)
            _log_step(self._anchor.step)
        elif anchor.step and self._adopts_after is not None:
            lasted = timedelta(microseconds=(now_ns - anchor.stepped_ns) // 1000)
            if lasted >= self._adopts_after:
                return now + self._adopt()
        return now

    def _adopt(self) -> timedelta:
        step = self._anchor.step
        if step:
            self._anchor = _Anchor(self._anchor.wall + step, self._anchor.uptime_ns)
            _log.warning("the step of this machine's clock by %s is adopted", step)
        return step


def _round(step: timedelta) -> timedelta:
    """Return a step in whole seconds, or zero for one that is too small to have been set."""
    return timedelta(0) if abs(step) < MIN_STEP else timedelta(seconds=round(step.total_seconds()))


def _log_step(step: timedelta) -> None:
    if not step:
        _log.warning("the clock of this machine agrees again with the time that has passed")
        return
    direction = "forward" if step > timedelta(0) else "back"
    _log.error(
        "the clock of this machine went %s by %s; this process goes on with the time that has passed: set "
        "the clock right, or restart the process if it is right now",
        direction,
        abs(step),
    )
