"""The clock for all measurements of time spans."""

import time

# On systems other than Linux, CLOCK_MONOTONIC may not advance while the machine is suspended;
# after a resume, minutes are then labelled too early.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime_ns() -> int:
    """Return nanoseconds on a clock that never steps and that, on Linux, includes time in suspend."""
    return time.clock_gettime_ns(_CLOCK)
