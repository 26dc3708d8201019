"""Which brokers delay probes because a client quota is exceeded."""

from collections import defaultdict
from collections.abc import Mapping

from fleetgauge_core.contract import Leg

#: A probe times out after 5 s, so the throttling that delayed it was reported at most slightly earlier.
_THROTTLE_RELEVANT_NS = 6_000_000_000
#: Less throttling within a probe's lifetime, or shortly before it, cannot make the probe time out.
_MIN_RELEVANT_NS = 1_000_000_000
_SECOND_NS = 1_000_000_000
#: Longer than the lifetime of any probe and of its minute.
_RETENTION_NS = 300_000_000_000


class QuotaThrottles:
    """Quota throttling by broker and leg. It has no lock: its owner serializes access.

    A broker mutes the connection that exceeded the quota, so each leg is throttled for itself.
    """

    def __init__(self) -> None:
        """Start without any recorded throttling."""
        self._periods: dict[tuple[int, Leg], list[tuple[int, int]]] = defaultdict(list)
        self._seconds: dict[int, float] = defaultdict(float)

    def record(self, broker_id: int, leg: Leg, at_ns: int, seconds: float) -> None:
        """Record that from ``at_ns`` (uptime) the broker accepts no requests of the leg for ``seconds``."""
        self._seconds[broker_id] += seconds
        periods = self._periods[broker_id, leg]
        until_ns = at_ns + int(seconds * _SECOND_NS)
        if periods and at_ns <= periods[-1][1]:
            start_ns, end_ns = periods.pop()
            at_ns, until_ns = min(at_ns, start_ns), max(until_ns, end_ns)
        periods.append((at_ns, until_ns))
        if periods[0][1] < at_ns - _RETENTION_NS:
            del periods[0]

    def has_delayed(self, broker_id: int, leg: Leg, failed_ns: int) -> bool:
        """Return whether throttling explains a probe to the broker that timed out at ``failed_ns``."""
        periods = self._periods.get((broker_id, leg))
        if periods is None or failed_ns - periods[-1][1] >= _THROTTLE_RELEVANT_NS:
            return False
        since_ns = failed_ns - 2 * _THROTTLE_RELEVANT_NS
        return self.measure_throttled_ns(broker_id, leg, since_ns, failed_ns) >= _MIN_RELEVANT_NS

    def measure_throttled_ns(self, broker_id: int, leg: Leg, start_ns: int, end_ns: int) -> int:
        """Return for how much of an interval the broker accepted no requests of the leg."""
        periods = self._periods.get((broker_id, leg), ())
        overlaps = (min(end, end_ns) - max(start, start_ns) for start, end in periods)
        return sum(overlap_ns for overlap_ns in overlaps if overlap_ns > 0)

    def drain_seconds(self) -> Mapping[int, float]:
        """Return the throttled seconds by broker since the last call, and reset them."""
        seconds, self._seconds = self._seconds, defaultdict(float)
        return seconds
