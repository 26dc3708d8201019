"""Whether a broker makes progress, judged by its own request and replication counters.

Motivation: a broker whose disk hangs answers no produce or fetch request, like a broker whose process hangs
or whose clients cannot reach it, but it still sends heartbeats to the controller. Only its own counters
show that it completes nothing.

Approach: a broker is stalled while it has work but completes no produce or consumer fetch request and
replicates no bytes from other brokers. A broker cut off from clients still replicates. For a broker that has
nothing to replicate, only a non-empty request queue shows that it has work.
"""

from dataclasses import dataclass

#: Three missed readings.
_STALE_AFTER_NS = 15_000_000_000
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class BrokerCounters:
    """One reading of a broker's JMX exporter.

    ``completed_requests`` (produce and consumer fetch) and ``replicated_bytes`` count from the broker's
    start.
    """

    queued_requests: int
    completed_requests: int
    replicated_bytes: int
    offline_log_dirs: int

    def has_stalled_since(self, before: "BrokerCounters") -> bool:
        """Return whether the broker has work but has completed none since an earlier reading."""
        has_work = self.queued_requests > 0 or self.replicated_bytes > 0
        return (
            has_work
            and self.completed_requests == before.completed_requests
            and self.replicated_bytes == before.replicated_bytes
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    at_ns: int
    counters: BrokerCounters
    last_progress_ns: int


class BrokerProgress:
    """Latest counters and stall durations by broker. It has no lock: its owner serializes access."""

    def __init__(self) -> None:
        """Start without any readings."""
        self._readings: dict[int, _Reading] = {}

    def record(self, broker_id: int, at_ns: int, counters: BrokerCounters) -> None:
        """Record the counters that a broker's exporter returned at ``at_ns`` (uptime)."""
        before = self._readings.get(broker_id)
        if before and counters.has_stalled_since(before.counters):
            last_progress_ns = before.last_progress_ns
        else:
            last_progress_ns = at_ns
        self._readings[broker_id] = _Reading(at_ns, counters, last_progress_ns)

    def latest_counters(self, broker_id: int, now_ns: int) -> BrokerCounters | None:
        """Return the broker's latest counters; None when the exporter has been silent for 15 s."""
        reading = self._fresh_reading(broker_id, now_ns)
        return reading.counters if reading else None

    def stalled_ms(self, broker_id: int, now_ns: int) -> int | None:
        """Return for how long the broker had made no progress at its latest reading; None when stale."""
        reading = self._fresh_reading(broker_id, now_ns)
        return (reading.at_ns - reading.last_progress_ns) // _MS if reading else None

    def _fresh_reading(self, broker_id: int, now_ns: int) -> _Reading | None:
        reading = self._readings.get(broker_id)
        return reading if reading and now_ns - reading.at_ns < _STALE_AFTER_NS else None
