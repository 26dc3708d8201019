"""Reads the counters that brokers' JMX exporters expose, every few seconds."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import urllib3

from fleetgauge_core.metrics.exposition import parse_exposition, sum_samples
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_probes.agent.broker_progress import BrokerCounters
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.fleet_probe import FleetProbe

_log = logging.getLogger("fleetgauge.probe")

_QUEUED_REQUESTS = "kafka_network_requestchannel_requestqueuesize"
_COMPLETED_REQUESTS = "kafka_network_requestmetrics_requests_total"
_REPLICATED_BYTES = "kafka_server_brokertopicmetrics_replicationbytesin_total"
_OFFLINE_LOG_DIRS = "kafka_log_logmanager_offlinelogdirectorycount"
_METRIC_NAMES = (_QUEUED_REQUESTS, _COMPLETED_REQUESTS, _REPLICATED_BYTES, _OFFLINE_LOG_DIRS)
#: Requests about the cluster, such as heartbeats and metadata, complete even while a disk hangs.
_CLIENT_REQUESTS = {"request": ("Produce", "FetchConsumer")}
_INTERVAL_S = 5
_TIMEOUT_S = 2
_CONCURRENT_REQUESTS = 8
_SHUTDOWN_POLL_S = 0.25


class JmxScraper:
    """Scrapes the exporters of all probed brokers whose metrics URL fleet.yaml gives."""

    def __init__(self, fleet_probe: FleetProbe) -> None:
        """Scrape for the cluster probes of ``fleet_probe``, which may change while ``run`` runs."""
        self._fleet_probe = fleet_probe
        # No retries: the next reading follows within seconds.
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))
        self._silent_urls: set[str] = set()

    def run(self, shutdown: ShutdownFlag) -> None:
        """Scrape every 5 s, or later if many exporters do not respond, until ``shutdown`` is set."""
        with self._http, ThreadPoolExecutor(_CONCURRENT_REQUESTS, "exporter") as pool:
            while not shutdown.is_set():
                next_s = time.monotonic() + _INTERVAL_S
                readings = [
                    pool.submit(self._read, probe, broker_id, url, shutdown)
                    for probe in self._fleet_probe.probes.values()
                    for broker_id, url in probe.exporter_urls().items()
                ]
                for reading in readings:
                    reading.result()
                while time.monotonic() < next_s and not shutdown.is_set():
                    shutdown.wait(_SHUTDOWN_POLL_S)

    def _read(self, probe: ClusterProbe, broker_id: int, url: str, shutdown: ShutdownFlag) -> None:
        if shutdown.is_set():
            return
        counters = scrape_counters(self._http, url)
        if counters:
            probe.record_counters(broker_id, counters)
            self._silent_urls.discard(url)
        elif url not in self._silent_urls:
            self._silent_urls.add(url)
            _log.warning(
                "broker %d: no counters from the JMX exporter at %s; storage stalls cannot be detected",
                broker_id,
                url,
            )


def scrape_counters(pool: urllib3.PoolManager, url: str) -> BrokerCounters | None:
    """Return the counters at an exporter's URL; None if it does not respond or lacks one of them."""
    fields = [("name[]", name) for name in _METRIC_NAMES]
    try:
        response = pool.request("GET", url, fields=fields)
    except urllib3.exceptions.HTTPError:
        return None
    return parse_counters(response.data.decode(errors="replace")) if response.status == 200 else None


def parse_counters(text: str) -> BrokerCounters | None:
    """Return the counters in a Prometheus exposition; None if one is missing or not a finite number.

    A broker exposes no counter of events that have never happened, so a missing request or replication
    counter is 0.
    """
    try:
        samples = parse_exposition(text)
        queued = sum_samples(samples, _QUEUED_REQUESTS)
        offline = sum_samples(samples, _OFFLINE_LOG_DIRS)
        if queued is None or offline is None:
            return None
        return BrokerCounters(
            queued_requests=int(queued),
            completed_requests=int(sum_samples(samples, _COMPLETED_REQUESTS, _CLIENT_REQUESTS) or 0),
            replicated_bytes=int(sum_samples(samples, _REPLICATED_BYTES) or 0),
            offline_log_dirs=int(offline),
        )
    except (ValueError, OverflowError):
        # ExpositionError is a ValueError; int() raises for NaN and for infinity.
        return None
