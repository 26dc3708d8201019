"""One cold bootstrap a minute, as when an application starts."""

import threading
from collections.abc import Callable
from contextlib import suppress
from zlib import crc32

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import BootstrapMeasurement, KafkaUnavailableError, measure_cold_bootstrap
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.topic_plan import TOPIC

_INTERVAL_S = 60
_TIMEOUT_S = 5.0
#: A bootstrap during which the process was paused for 1/5 of the time measures the process, as with probes.
_MIN_PAUSED_SHARE = 5


class ColdBootstrapLoop:
    """Measures a cold bootstrap of one cluster every minute, at a second derived from the cluster's id."""

    def __init__(self, cluster_id: str, access: ClusterAccess, pauses: ProcessPauses) -> None:
        """Prepare the loop without connecting."""
        self._cluster_id = cluster_id
        self._access = access
        self._pauses = pauses
        self.latest: BootstrapMeasurement | None = None
        """The latest measurement. Replaced, never modified, because other threads read it without a lock."""

    def run(self, shutdown: threading.Event, topic_exists: Callable[[], bool]) -> None:
        """Measure every minute until ``shutdown`` is set.

        A bootstrap requests the probe topic's metadata, which could auto-create the topic; so none is made
        while ``topic_exists`` returns False.
        """
        wait_s: float = crc32(self._cluster_id.encode()) % _INTERVAL_S
        while not shutdown.wait(wait_s):
            wait_s = _INTERVAL_S
            if topic_exists():
                with suppress(KafkaUnavailableError):
                    self._measure()

    def _measure(self) -> None:
        bootstrap = measure_cold_bootstrap(self._access, TOPIC, _TIMEOUT_S)
        duration_ns = bootstrap.ended_ns - bootstrap.started_ns
        paused_ns = self._pauses.measure_paused_ns(bootstrap.started_ns, bootstrap.ended_ns)
        if paused_ns * _MIN_PAUSED_SHARE < duration_ns:
            self.latest = bootstrap
