"""Rates of records written to each cluster, from the end offsets of its logs."""

from collections import deque
from collections.abc import Mapping

#: A topic and a partition number.
TopicAndPartition = tuple[str, int]

#: Rates are averaged over this window, or over the available observations if they span less.
_WINDOW_MS = 60_000


class InboundRates:
    """Rates of records written to the mirrored partitions of each cluster."""

    def __init__(self) -> None:
        self._observations: dict[str, deque[tuple[int, Mapping[TopicAndPartition, int]]]] = {}

    def observe(self, cluster: str, ends: Mapping[TopicAndPartition, int], at_ms: int) -> None:
        """Add the end offsets of a cluster's logs at that time."""
        observations = self._observations.setdefault(cluster, deque())
        observations.append((at_ms, ends))
        while len(observations) > 2 and observations[1][0] <= at_ms - _WINDOW_MS:
            observations.popleft()

    def records_per_s(self, cluster: str) -> float | None:
        """Return the rate of a cluster in records per second, or None before the second observation.

        Partitions that are new, or whose end offset went back, do not count.
        """
        observations = self._observations.get(cluster)
        if not observations or len(observations) < 2:
            return None
        (first_ms, first_ends), (last_ms, last_ends) = observations[0], observations[-1]
        written = sum(
            end - first_ends[partition] if first_ends.get(partition, end + 1) <= end else 0
            for partition, end in last_ends.items()
        )
        return 1000 * written / (last_ms - first_ms) if last_ms > first_ms else None
