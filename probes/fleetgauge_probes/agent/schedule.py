"""When probes are due: a fixed grid on the uptime, whatever became of the earlier ones.

The grid is laid on the minute: 100 slots of 600 ms, each broker and leg with
a phase of its own so that a cluster's probes are spread evenly.
"""

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.contract import Leg

INTERVAL_NS = 600_000_000
MINUTE_NS = 60_000_000_000
#: A probe this late would fail by definition; it is not attempted, and not invented.
TOO_LATE_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class MinuteClock:
    """Names minutes: the uptime at which a wall-clock minute began.

    The wall clock is read once, so a step of it neither doubles nor loses a minute.
    """

    origin_ns: int
    origin_minute: datetime

    @classmethod
    def at(cls, uptime_ns: int, wall: datetime) -> "MinuteClock":
        minute = wall.astimezone(UTC).replace(second=0, microsecond=0)
        into_minute_ns = (wall - minute) // timedelta(microseconds=1) * 1000
        return cls(uptime_ns - into_minute_ns, minute)

    def index(self, at_ns: int) -> int:
        """How many minutes after the origin."""
        return (at_ns - self.origin_ns) // MINUTE_NS

    def start_ns(self, index: int) -> int:
        return self.origin_ns + index * MINUTE_NS

    def minute(self, index: int) -> datetime:
        """The minute's UTC start."""
        return self.origin_minute + timedelta(minutes=index)

    def wall(self, at_ns: int) -> datetime:
        return self.origin_minute + timedelta(microseconds=(at_ns - self.origin_ns) // 1000)


def phase_ns(position: int, brokers: int, leg: Leg) -> int:
    """Where in the interval a broker's slot lies: every broker and leg has one of its own.

    Of two slots a broker, the client legs take the even ones; an odd distance of
    about half the interval puts the leader legs on the others.
    """
    slots = 2 * max(brokers, 1)
    apart = slots // 2 if slots // 2 % 2 else slots // 2 + 1
    slot = 2 * position + (apart if leg is Leg.LEADER else 0)
    return slot % slots * INTERVAL_NS // slots


def next_due_ns(clock: MinuteClock, phase: int, after_ns: int) -> int:
    """The first slot of that phase strictly after an instant."""
    slots = (after_ns - clock.origin_ns - phase) // INTERVAL_NS + 1
    return clock.origin_ns + phase + slots * INTERVAL_NS


class Slot(NamedTuple):
    """When a broker's next probe on a leg is due. A tuple, as a thousand a second are put in order."""

    due_ns: int
    broker_id: int
    leg: Leg


class Timetable:
    """The next slot of every broker and leg."""

    def __init__(self, clock: MinuteClock) -> None:
        self._clock = clock
        self._next: list[Slot] = []

    def add(self, broker_id: int, leg: Leg, phase: int, after_ns: int) -> None:
        """From the first slot of that phase after an instant on."""
        heapq.heappush(self._next, Slot(next_due_ns(self._clock, phase, after_ns), broker_id, leg))

    @property
    def next_ns(self) -> int | None:
        """When the earliest slot is; None where there is none."""
        return self._next[0].due_ns if self._next else None

    def take(self, now_ns: int) -> Slot | None:
        """The earliest slot that has come; None where none has. What is too late is passed over."""
        while self._next and self._next[0].due_ns <= now_ns:
            slot = self._next[0]
            late_ns = now_ns - slot.due_ns
            slots_on = 1 if late_ns <= TOO_LATE_NS else -(-(late_ns - TOO_LATE_NS) // INTERVAL_NS)
            following = Slot(slot.due_ns + slots_on * INTERVAL_NS, slot.broker_id, slot.leg)
            heapq.heapreplace(self._next, following)
            if late_ns <= TOO_LATE_NS:
                return slot
        return None
