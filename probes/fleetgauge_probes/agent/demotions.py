"""Which brokers of a cluster lead nothing on purpose."""

import logging
from collections.abc import Callable, Set

from fleetgauge_core.kafka import KafkaUnavailableError

_log = logging.getLogger("fleetgauge.probe")

_READ_AGAIN_NS = 10_000_000_000


class Demotions:
    """Marks of others, read as rarely as they can matter. For one thread."""

    def __init__(self, cluster_id: str, read: Callable[[], frozenset[int]]) -> None:
        self._cluster_id = cluster_id
        self._read = read
        self._read_for: Set[int] = frozenset()
        self._read_at_ns = -_READ_AGAIN_NS
        self._said = ""
        self.marked: frozenset[int] = frozenset()
        """As far as is known."""

    def look(self, homeless: Set[int], now_ns: int) -> None:
        """Read again what may have changed: somebody has lost its home, or had been marked.

        ``homeless`` are first nowhere, though nobody is known to have wanted that.
        """
        wanted = homeless or self.marked
        waits = homeless <= self._read_for and now_ns < self._read_at_ns + _READ_AGAIN_NS
        if not wanted or waits:
            return
        self._read_for, self._read_at_ns = homeless, now_ns
        try:
            self.marked = self._read()
        except KafkaUnavailableError as error:
            if str(error) != self._said:
                _log.warning("%s: not known who is demoted: %s", self._cluster_id, error)
            self._said = str(error)
