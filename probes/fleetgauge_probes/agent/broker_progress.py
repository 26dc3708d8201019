"""Whether a broker gets on with its work, by its own counters.

Motivation: a broker whose disk hangs answers nobody, as one does that hangs itself or is cut off, and goes on
telling its cluster that it lives. Only its own counters tell that it gets on with nothing.

Approach: it stands still while it neither answers a producer or consumer nor copies anything from another
broker. Who is cut off from clients goes on copying; of who has nothing to copy only a queue of requests
tells.
"""

from dataclasses import dataclass

#: Three readings missed.
_FRESH_NS = 15_000_000_000
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Counters:
    """What a broker's exporter says at one moment; ``completed`` and ``copied`` since the broker started."""

    waiting: int
    completed: int
    copied: int
    offline_dirs: int

    def stands_where(self, before: "Counters") -> bool:
        """Whether it has done nothing since, though it has work."""
        has_work = self.waiting > 0 or self.copied > 0
        return has_work and (self.completed, self.copied) == (before.completed, before.copied)


@dataclass(frozen=True, slots=True)
class _Reading:
    at_ns: int
    counters: Counters
    stands_since_ns: int


class Progress:
    """By broker; its owner guards it."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}

    def note(self, broker_id: int, at_ns: int, counters: Counters) -> None:
        """What it said then."""
        before = self._readings.get(broker_id)
        stands = before is not None and counters.stands_where(before.counters)
        since_ns = before.stands_since_ns if before and stands else at_ns
        self._readings[broker_id] = _Reading(at_ns, counters, since_ns)

    def counters(self, broker_id: int, now_ns: int) -> Counters | None:
        """The last; None where nothing was said for a while."""
        reading = self._fresh(broker_id, now_ns)
        return reading.counters if reading else None

    def stalled_ms(self, broker_id: int, now_ns: int) -> int | None:
        """For how long it had done nothing, when it was last heard."""
        reading = self._fresh(broker_id, now_ns)
        return (reading.at_ns - reading.stands_since_ns) // _MS if reading else None

    def _fresh(self, broker_id: int, now_ns: int) -> _Reading | None:
        reading = self._readings.get(broker_id)
        return reading if reading and now_ns - reading.at_ns < _FRESH_NS else None
