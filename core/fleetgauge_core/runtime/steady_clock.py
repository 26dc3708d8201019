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
#: A machine that has just started sets its clock by the network, and is right from then on.
EARLY = timedelta(minutes=5)


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

    A step within EARLY of the start is adopted at once. ``adopts_after``: how long a later one must last to
    be adopted; None if only ``adopt_step`` adopts it. Threads may share it.
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
        wall_time, self._started_ns = self._read()
        self._anchor = _Anchor(wall_time, self._started_ns)

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
        anchor, (wall, now_ns) = self._anchor, self._read()
        now = anchor.wall + timedelta(microseconds=(now_ns - anchor.uptime_ns) // 1000)
        step = wall - now
        if abs(step - anchor.step) >= MIN_STEP:
            self._anchor = _Anchor(anchor.wall, anchor.uptime_ns, _round(step), now_ns)
        if self._anchor.step and self._is_to_be_adopted(now_ns):
            return now + self._adopt()
        if self._anchor.step != anchor.step:
            _log_step(self._anchor.step)
        return now

    def _is_to_be_adopted(self, now_ns: int) -> bool:
        if _to_duration(self._anchor.stepped_ns - self._started_ns) < EARLY:
            return True
        lasted = _to_duration(now_ns - self._anchor.stepped_ns)
        return self._adopts_after is not None and lasted >= self._adopts_after

    def _read(self) -> tuple[datetime, int]:
        """Read both clocks at one moment: a process that is suspended between the two has to look again."""
        while True:
            before_ns = self._clock_ns()
            wall, after_ns = self._wall(), self._clock_ns()
            if _to_duration(after_ns - before_ns) < MIN_STEP / 4:
                return wall, after_ns

    def _adopt(self) -> timedelta:
        step = self._anchor.step
        if step:
            self._anchor = _Anchor(self._anchor.wall + step, self._anchor.uptime_ns)
            _log.warning("the step of this machine's clock by %s is adopted", step)
        return step


def _to_duration(nanoseconds: int) -> timedelta:
    return timedelta(microseconds=nanoseconds // 1000)


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
