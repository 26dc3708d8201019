"""Probing of all clusters of this agent, which are added, removed and changed while it runs."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from fleetgauge_core.fleet import Cluster, ClusterAccess
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.cluster_report import ClusterReport

#: Pause before credentials that could not be read are read again.
_RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class _StartFailure:
    """Why a probe could not be started, and when to try again; at once if the access changes."""

    message: str
    access: ClusterAccess
    retry_at_s: float


class FleetProbe:
    """Starts and stops cluster probes. For use by a single thread.

    No cluster waits for another, not even for one whose probe takes long to stop.
    """

    def __init__(
        self,
        create_probe: Callable[[Cluster], ClusterProbe],
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without clusters; ``create_probe`` makes a probe that is not started yet."""
        self._create_probe = create_probe
        self._elapsed_s = elapsed_s
        self._clusters: Sequence[Cluster] = ()
        self._probes: Mapping[str, ClusterProbe] = {}
        self._stopping_threads: dict[str, threading.Thread] = {}
        self._final_reports: SimpleQueue[ClusterReport] = SimpleQueue()
        self._failures: Mapping[str, _StartFailure] = {}

    @property
    def probes(self) -> Mapping[str, ClusterProbe]:
        """The running probes by cluster id. Replaced, never modified: other threads read it."""
        return self._probes

    @property
    def start_errors(self) -> dict[str, str]:
        """Why a cluster is not probed, by the ID of each whose credentials cannot be read."""
        return {
            cluster_id: f"{failure.message}; provide it: until then the cluster is not measured"
            for cluster_id, failure in self._failures.items()
        }

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
        self._failures = {
            cluster_id: failure for cluster_id, failure in self._failures.items() if cluster_id in wanted
        }
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
            if cluster.id not in kept
            and cluster.id not in self._stopping_threads
            and self._may_start(cluster)
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

    def _may_start(self, cluster: Cluster) -> bool:
        failure = self._failures.get(cluster.id)
        return failure is None or failure.access != cluster.access or self._elapsed_s() >= failure.retry_at_s

    def _start_probe(self, cluster: Cluster) -> ClusterProbe | None:
        """Start a probe; return None while the cluster's credentials cannot be read."""
        probe = self._create_probe(cluster)
        others = {
            cluster_id: failure for cluster_id, failure in self._failures.items() if cluster_id != cluster.id
        }
        try:
            probe.start()
        except KafkaUnavailableError as error:
            failure = _StartFailure(str(error), cluster.access, self._elapsed_s() + _RETRY_S)
            self._failures = {**others, cluster.id: failure}
            return None
        self._failures = others
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
