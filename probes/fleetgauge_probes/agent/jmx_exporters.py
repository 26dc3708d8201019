"""What brokers' JMX exporters say, read every few seconds."""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import urllib3
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_probes.agent.broker_progress import Counters
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.fleet_probe import FleetProbe

_log = logging.getLogger("fleetgauge.probe")

_WAITING = "kafka_network_requestchannel_requestqueuesize"
_COMPLETED = "kafka_network_requestmetrics_requests_total"
_COPIED = "kafka_server_brokertopicmetrics_replicationbytesin_total"
_OFFLINE = "kafka_log_logmanager_offlinelogdirectorycount"
#: Who asks of the cluster goes on being answered where the disk does not.
_CLIENTS = ("Produce", "FetchConsumer")
_EVERY_S = 5
_TIMEOUT_S = 2
_AT_ONCE = 8
_LISTEN_S = 0.25


class Exporters:
    """Those of all clusters that are measured, as far as fleet.yaml says where they are."""

    def __init__(self, measuring: FleetProbe) -> None:
        self._measuring = measuring
        # Tries nothing twice: the next reading is due in seconds.
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT_S))
        self._silent: set[str] = set()

    def run(self, stopping: Stopping) -> None:
        """Every 5 s all of them, later where many are silent, until ``stopping`` is set."""
        with self._http, ThreadPoolExecutor(_AT_ONCE, "exporter") as pool:
            while not stopping.is_set():
                next_s = time.monotonic() + _EVERY_S
                reading = [
                    pool.submit(self._read, probe, broker_id, url, stopping)
                    for probe in self._measuring.probes.values()
                    for broker_id, url in probe.exporters().items()
                ]
                for one in reading:
                    one.result()
                while time.monotonic() < next_s and not stopping.is_set():
                    stopping.wait(_LISTEN_S)

    def _read(self, probe: ClusterProbe, broker_id: int, url: str, stopping: Stopping) -> None:
        if stopping.is_set():
            return
        counters = scrape(self._http, url)
        if counters:
            probe.tells(broker_id, counters)
            self._silent.discard(url)
        elif url not in self._silent:
            self._silent.add(url)
            _log.warning("broker %d tells no counters at %s: its disk is not watched", broker_id, url)


def scrape(pool: urllib3.PoolManager, url: str) -> Counters | None:
    """What the exporter there says; None where it is silent, or does not say all of it."""
    wanted = [("name[]", name) for name in (_WAITING, _COMPLETED, _COPIED, _OFFLINE)]
    try:
        answer = pool.request("GET", url, fields=wanted)
    except urllib3.exceptions.HTTPError:
        return None
    return counters_in(answer.data.decode(errors="replace")) if answer.status == 200 else None


def counters_in(text: str) -> Counters | None:
    """Of an exposition in Prometheus' text format. None where something is missing or no number."""
    try:
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        clients = [one for one in samples if one.labels.get("request") in _CLIENTS]
        waiting, offline = _sum(samples, _WAITING), _sum(samples, _OFFLINE)
        # Of what has never happened a broker says nothing.
        completed, copied = _sum(clients, _COMPLETED) or 0, _sum(samples, _COPIED) or 0
    except (ValueError, OverflowError):
        return None
    if waiting is None or offline is None:
        return None
    return Counters(waiting, completed, copied, offline)


def _sum(samples: Iterable[Sample], name: str) -> int | None:
    found = [int(one.value) for one in samples if one.name == name]
    return sum(found) if found else None
