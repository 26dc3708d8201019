"""Which brokers hold probes back for a quota."""

from collections import defaultdict
from collections.abc import Mapping

#: A probe is given up after 5 s; what held it back was told while it waited, or just before.
_EXCUSES_FOR_NS = 6_000_000_000
_SECOND_NS = 1_000_000_000


class Throttles:
    """By broker; its owner guards it."""

    def __init__(self) -> None:
        self._until_ns: dict[int, int] = {}
        self._seconds: dict[int, float] = defaultdict(float)

    def note(self, broker_id: int, at_ns: int, seconds: float) -> None:
        """From then on the broker takes nothing for so long."""
        self._until_ns[broker_id] = at_ns + int(seconds * _SECOND_NS)
        self._seconds[broker_id] += seconds

    def explains(self, broker_id: int, failed_ns: int) -> bool:
        """Whether a probe that was given up then had been held back."""
        until_ns = self._until_ns.get(broker_id)
        return until_ns is not None and failed_ns - until_ns < _EXCUSES_FOR_NS

    def take(self) -> Mapping[int, float]:
        """Seconds by broker, since this was last asked."""
        seconds, self._seconds = self._seconds, defaultdict(float)
        return seconds
