"""When probes are due: a fixed grid on the monotonic clock, whatever became of the earlier ones.

The grid is laid on the minute: 100 slots of 600 ms, each broker and leg with
a phase of its own so that a cluster's probes are spread evenly.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fleetgauge_probes.contract import Leg

INTERVAL_NS = 600_000_000
MINUTE_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class MinuteClock:
    """Names minutes: the monotonic instant at which a wall-clock minute began.

    The wall clock is read once, so a step of it neither doubles nor loses a minute.
    """

    origin_ns: int
    origin_minute: datetime

    @classmethod
    def at(cls, monotonic_ns: int, wall: datetime) -> "MinuteClock":
        minute = wall.astimezone(UTC).replace(second=0, microsecond=0)
        into_minute_ns = (wall - minute) // timedelta(microseconds=1) * 1000
        return cls(monotonic_ns - into_minute_ns, minute)

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
