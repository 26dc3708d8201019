"""Probing of all clusters of this agent, which are added, removed and changed while it runs."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.cluster_report import ClusterReport

_log = logging.getLogger("fleetgauge.probe")


class FleetProbe:
    """Starts and stops cluster probes. For use by a single thread.

    No cluster waits for another, not even for one whose probe takes long to stop.
    """

    def __init__(self, create_probe: Callable[[Cluster], ClusterProbe]) -> None:
        """Start without clusters; ``create_probe`` makes a probe that is not started yet."""
        self._create_probe = create_probe
        self._clusters: Sequence[Cluster] = ()
        self._probes: Mapping[str, ClusterProbe] = {}
        self._stopping_threads: dict[str, threading.Thread] = {}
        self._final_reports: SimpleQueue[ClusterReport] = SimpleQueue()
        self._start_errors: dict[str, str] = {}

    @property
    def probes(self) -> Mapping[str, ClusterProbe]:
        """The running probes by cluster id. Replaced, never modified: other threads read it."""
        return self._probes

    def update_clusters(self, clusters: Sequence[Cluster]) -> None:
        """Probe exactly these clusters from now on.

        A cluster whose access or credentials changed gets a new probe once its previous one has stopped.
        """
        self._stopping_threads = {
            cluster_id: thread for cluster_id, thread in self._stopping_threads.items() if thread.is_alive()
        }
        is_complete = clusters == self._clusters and all(cluster.id in self._probes for cluster in clusters)
        if is_complete and not any(probe.has_outdated_credentials() for probe in self._probes.values()):
            return
        self._clusters = clusters
        wanted = {cluster.id: cluster for cluster in clusters}
        kept = {}
        for cluster_id, probe in self._probes.items():
            cluster = wanted.get(cluster_id)
            if cluster is None or cluster.access != probe.access or probe.has_outdated_credentials():
                self._stop_in_background(cluster_id, probe)
            else:
                probe.configure(cluster)
                kept[cluster_id] = probe
        new = [
            cluster
            for cluster in clusters
            if cluster.id not in kept and cluster.id not in self._stopping_threads
        ]
        started = {cluster.id: self._start_probe(cluster) for cluster in new}
        self._probes = kept | {cluster_id: probe for cluster_id, probe in started.items() if probe}

    def collect_reports(self) -> list[ClusterReport]:
        """Return a report of each running probe, and the final reports of those that have stopped."""
        return [probe.collect_report() for probe in self._probes.values()] + self._take_final_reports()

    def stop(self) -> list[ClusterReport]:
        """Stop all probes at the same time and return their final reports."""
        for cluster_id, probe in self._probes.items():
            self._stop_in_background(cluster_id, probe)
        self._probes = {}
        for thread in self._stopping_threads.values():
            thread.join()
        return self._take_final_reports()

    def _start_probe(self, cluster: Cluster) -> ClusterProbe | None:
        """Start a probe; return None while the cluster's credentials cannot be read."""
        probe = self._create_probe(cluster)
        try:
            probe.start()
        except KafkaUnavailableError as error:
            if self._start_errors.get(cluster.id) != str(error):
                _log.error("%s: not probed: %s", cluster.id, error)
            self._start_errors[cluster.id] = str(error)
            return None
        self._start_errors.pop(cluster.id, None)
        return probe

    def _stop_in_background(self, cluster_id: str, probe: ClusterProbe) -> None:
        thread = threading.Thread(
            target=lambda: self._final_reports.put(probe.stop()), name=f"{cluster_id}-stopping"
        )
        thread.start()
        self._stopping_threads[cluster_id] = thread

    def _take_final_reports(self) -> list[ClusterReport]:
        reports = []
        while not self._final_reports.empty():
            reports.append(self._final_reports.get())
        return reports
