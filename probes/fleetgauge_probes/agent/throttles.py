"""Which brokers delay probes because a client quota is exceeded."""

from collections import defaultdict
from collections.abc import Mapping

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.period_history import PeriodHistory

_SECOND_NS = 1_000_000_000


class QuotaThrottles:
    """Quota throttling by broker and client. It has no lock: its owner serializes access.

    A broker mutes the connection that exceeded the quota, so each client is throttled for itself: the
    producer of each leg, and the consumer, which is given as None.
    """

    def __init__(self) -> None:
        """Start without any recorded throttling."""
        self._periods: dict[tuple[int, Leg | None], PeriodHistory] = defaultdict(PeriodHistory)
        self._seconds: dict[int, float] = defaultdict(float)

    def record(self, broker_id: int, client: Leg | None, at_ns: int, seconds: float) -> None:
        """Record that from ``at_ns`` (uptime) on a broker accepts no requests of a client for ``seconds``."""
        self._seconds[broker_id] += seconds
        until_ns = at_ns + int(seconds * _SECOND_NS)
        self._periods[broker_id, client] = self._periods[broker_id, client].append(at_ns, until_ns)

    def end(self, broker_id: int, at_ns: int) -> None:
        """Record that the broker has failed, so that it is no quota that delays what is sent to it."""
        for key in self._periods:
            if key[0] == broker_id:
                self._periods[key] = self._periods[key].cut(at_ns)

    def measure_throttled_ns(self, broker_id: int, client: Leg | None, start_ns: int, end_ns: int) -> int:
        """Return for how much of an interval the broker accepted no requests of the client."""
        periods = self._periods.get((broker_id, client))
        return periods.measure_ns(start_ns, end_ns) if periods else 0

    def drain_seconds(self) -> Mapping[int, float]:
        """Return the throttled seconds by broker since the last call, and reset them."""
        seconds, self._seconds = self._seconds, defaultdict(float)
        return seconds
