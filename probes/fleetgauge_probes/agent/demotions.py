"""Cached demotion marks: brokers of a cluster that lead no partitions on purpose."""

import logging
from collections.abc import Callable, Mapping, Set

from fleetgauge_core.kafka import KafkaUnavailableError

_log = logging.getLogger("fleetgauge.probe")

_REREAD_AFTER_NS = 10_000_000_000


class DemotionCache:
    """Demotion marks of one cluster, read only when they can matter. For use by a single thread."""

    def __init__(self, cluster_id: str, read: Callable[[], Mapping[int, bool]]) -> None:
        """Create an empty cache; ``read`` returns whether each broker with a mark is demoted.

        It raises KafkaUnavailableError.
        """
        self._cluster_id = cluster_id
        self._read = read
        self._read_for: Set[int] = frozenset()
        self._read_at_ns = -_REREAD_AFTER_NS
        self._logged_error = ""
        self.demoted: frozenset[int] = frozenset()
        """The brokers whose last known mark says that they are demoted."""

    def refresh(self, without_home: Set[int], now_ns: int) -> None:
        """Read the marks again if a broker lost its home partition or was marked before.

        ``without_home`` are the brokers that are the first replica of no partition and not known to be
        demoted. A read that fails leaves the previous marks in place.
        """
        needed = without_home or self.demoted
        is_recent = without_home <= self._read_for and now_ns < self._read_at_ns + _REREAD_AFTER_NS
        if not needed or is_recent:
            return
        self._read_for, self._read_at_ns = without_home, now_ns
        try:
            marks = self._read()
        except KafkaUnavailableError as error:
            if str(error) != self._logged_error:
                _log.warning(
                    "%s: demotion marks cannot be read, keeping the previous ones: %s",
                    self._cluster_id,
                    error,
                )
            self._logged_error = str(error)
            return
        # The end of a demotion is a mark too. One that is missing was lost with a topic that was deleted.
        ended = {broker_id for broker_id, is_demoted in marks.items() if not is_demoted}
        self.demoted = (self.demoted - ended) | (marks.keys() - ended)
