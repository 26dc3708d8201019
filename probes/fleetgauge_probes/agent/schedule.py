"""When probes are due: a fixed schedule on the uptime, independent of the outcome of earlier probes.

The schedule is aligned to the minute: 100 slots of 600 ms, in which each broker and leg has its own phase so
that a cluster's probes are spread evenly.
"""

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.contract import Leg

INTERVAL_NS = 600_000_000
MINUTE_NS = 60_000_000_000
#: A probe sent this late would miss its deadline anyway; it is neither attempted nor counted as a failure.
TOO_LATE_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class MinuteClock:
    """Maps uptimes to wall-clock minutes by the uptime at which one such minute began.

    The wall clock is read only once, so a step of it neither duplicates nor skips a minute.
    """

    origin_ns: int
    origin_minute: datetime

    @classmethod
    def from_wall_time(cls, uptime_ns: int, wall_time: datetime) -> "MinuteClock":
        """Return a clock for a wall time that was read at an uptime."""
        minute = wall_time.astimezone(UTC).replace(second=0, microsecond=0)
        into_minute_ns = (wall_time - minute) // timedelta(microseconds=1) * 1000
        return cls(uptime_ns - into_minute_ns, minute)

    def minute_index(self, at_ns: int) -> int:
        """Return the number of whole minutes from the origin to an uptime."""
        return (at_ns - self.origin_ns) // MINUTE_NS

    def minute_start(self, index: int) -> datetime:
        """Return the UTC start of a minute."""
        return self.origin_minute + timedelta(minutes=index)

    def wall_time(self, at_ns: int) -> datetime:
        """Return the UTC time at an uptime, by the wall clock as it was when this clock was made."""
        return self.origin_minute + timedelta(microseconds=(at_ns - self.origin_ns) // 1000)


def compute_phase_ns(position: int, broker_count: int, leg: Leg) -> int:
    """Return the offset of a broker's slot within the interval, unique for every broker and leg.

    There are two slots for each broker. Client legs take the even slots; an odd distance of about half the
    interval puts the leader legs on the odd ones.
    """
    slots = 2 * max(broker_count, 1)
    distance = slots // 2 if slots // 2 % 2 else slots // 2 + 1
    slot = 2 * position + (distance if leg is Leg.LEADER else 0)
    return slot % slots * INTERVAL_NS // slots


def find_next_slot_ns(clock: MinuteClock, phase_ns: int, after_ns: int) -> int:
    """Return the uptime of the first slot with a phase strictly after ``after_ns``."""
    slots = (after_ns - clock.origin_ns - phase_ns) // INTERVAL_NS + 1
    return clock.origin_ns + phase_ns + slots * INTERVAL_NS


class ProbeSlot(NamedTuple):
    """When the next probe of a broker and leg is due; a tuple because a thousand a second are sorted."""

    due_ns: int
    broker_id: int
    leg: Leg


class ProbeSchedule:
    """The next slot of every broker and leg, earliest first."""

    def __init__(self, clock: MinuteClock) -> None:
        """Start without any slots."""
        self._clock = clock
        self._slots: list[ProbeSlot] = []

    def add_leg(self, broker_id: int, leg: Leg, phase_ns: int, after_ns: int) -> None:
        """Schedule a broker's leg from its first slot strictly after ``after_ns`` on."""
        heapq.heappush(
            self._slots, ProbeSlot(find_next_slot_ns(self._clock, phase_ns, after_ns), broker_id, leg)
        )

    @property
    def next_due_ns(self) -> int | None:
        """The uptime of the earliest slot; None without any slots."""
        return self._slots[0].due_ns if self._slots else None

    def pop_due_slot(self, now_ns: int) -> ProbeSlot | None:
        """Return the earliest slot that is due and schedule the one after it; None if no slot is due.

        Slots that are more than TOO_LATE_NS late are skipped.
        """
        while self._slots and self._slots[0].due_ns <= now_ns:
            slot = self._slots[0]
            late_ns = now_ns - slot.due_ns
            advance = 1 if late_ns <= TOO_LATE_NS else -(-(late_ns - TOO_LATE_NS) // INTERVAL_NS)
            following = ProbeSlot(slot.due_ns + advance * INTERVAL_NS, slot.broker_id, slot.leg)
            heapq.heapreplace(self._slots, following)
            if late_ns <= TOO_LATE_NS:
                return slot
        return None
