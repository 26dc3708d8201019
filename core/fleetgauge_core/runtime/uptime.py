"""The clock of every measurement."""

import time

# Elsewhere than on Linux the monotonic clock may stand still while the machine sleeps; minutes are then named
# too early afterwards.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime_ns() -> int:
    """Never steps, and runs on while the machine sleeps."""
    return time.clock_gettime_ns(_CLOCK)
