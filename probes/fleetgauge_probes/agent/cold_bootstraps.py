"""A cold bootstrap once a minute, as of an application that starts just then."""

import threading
from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import Bootstrap, KafkaUnavailableError, cold_bootstrap
from fleetgauge_probes.agent.process_pauses import Stalls
from fleetgauge_probes.agent.topic_plan import TOPIC

_EVERY_S = 60
_TIMEOUT_S = 5.0
#: A fifth of its time: as with a probe, it then tells of this process.
_STALLED_SHARE = 5


class Bootstraps:
    """Of one cluster, at a time of the minute that is its own."""

    def __init__(self, cluster_id: str, access: Access, stalls: Stalls) -> None:
        self._cluster_id = cluster_id
        self._access = access
        self._stalls = stalls
        self.last: Bootstrap | None = None
        """Replaced, never changed: others read it meanwhile."""

    def until(self, stopping: threading.Event, topic_is_there: Callable[[], bool]) -> None:
        """A topic that is not there might be made by the asking, so then nothing is asked."""
        wait_s: float = crc32(self._cluster_id.encode()) % _EVERY_S
        while not stopping.wait(wait_s):
            wait_s = _EVERY_S
            if topic_is_there():
                with suppress(KafkaUnavailableError):
                    self._bootstrap()

    def _bootstrap(self) -> None:
        found = cold_bootstrap(self._access, TOPIC, _TIMEOUT_S)
        took_ns = found.ended_ns - found.started_ns
        if self._stalls.within_ns(found.started_ns, found.ended_ns) * _STALLED_SHARE < took_ns:
            self.last = found
