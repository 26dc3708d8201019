"""Which brokers delay probes because a client quota is exceeded."""

from collections import defaultdict
from collections.abc import Mapping

#: A probe times out after 5 s, so the throttling that delayed it was reported at most slightly earlier.
_THROTTLE_RELEVANT_NS = 6_000_000_000
_SECOND_NS = 1_000_000_000


class QuotaThrottles:
    """Quota throttling by broker. It has no lock: its owner serializes access."""

    def __init__(self) -> None:
        """Start without any recorded throttling."""
        self._until_ns: dict[int, int] = {}
        self._seconds: dict[int, float] = defaultdict(float)

    def record(self, broker_id: int, at_ns: int, seconds: float) -> None:
        """Record that from ``at_ns`` (uptime) the broker accepts no requests for so many seconds."""
        self._until_ns[broker_id] = at_ns + int(seconds * _SECOND_NS)
        self._seconds[broker_id] += seconds

    def has_delayed(self, broker_id: int, failed_ns: int) -> bool:
        """Return whether throttling explains a probe to the broker that timed out at ``failed_ns``."""
        until_ns = self._until_ns.get(broker_id)
        return until_ns is not None and failed_ns - until_ns < _THROTTLE_RELEVANT_NS

    def drain_seconds(self) -> Mapping[int, float]:
        """Return the throttled seconds by broker since the last call, and reset them."""
        seconds, self._seconds = self._seconds, defaultdict(float)
        return seconds
