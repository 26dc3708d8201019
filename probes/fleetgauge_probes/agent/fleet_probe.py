"""Probes every cluster that this agent has; they come, go and change while it runs."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.cluster_report import Report

_log = logging.getLogger("fleetgauge.probe")


class FleetProbe:
    """For one thread. No cluster waits for another, not even for one that takes long to end."""

    def __init__(self, make: Callable[[Cluster], ClusterProbe]) -> None:
        self._make = make
        self._clusters: Sequence[Cluster] = ()
        self._probes: Mapping[str, ClusterProbe] = {}
        self._leaving: dict[str, threading.Thread] = {}
        self._left: SimpleQueue[Report] = SimpleQueue()
        self._unreadable: dict[str, str] = {}

    @property
    def probes(self) -> Mapping[str, ClusterProbe]:
        """Those of the clusters that are measured now, by id. Replaced, never changed: others read it."""
        return self._probes

    def measure(self, clusters: Sequence[Cluster]) -> None:
        """From now on these. One that is reached otherwise begins anew, when its old probe has ended."""
        self._leaving = {one: thread for one, thread in self._leaving.items() if thread.is_alive()}
        complete = clusters == self._clusters and all(one.id in self._probes for one in clusters)
        if complete and not any(probe.is_outdated() for probe in self._probes.values()):
            return
        self._clusters = clusters
        wanted = {cluster.id: cluster for cluster in clusters}
        staying = {}
        for cluster_id, probe in self._probes.items():
            cluster = wanted.get(cluster_id)
            if cluster is None or cluster.access != probe.access or probe.is_outdated():
                self._end(cluster_id, probe)
            else:
                probe.configure(cluster)
                staying[cluster_id] = probe
        coming = [one for one in clusters if one.id not in staying and one.id not in self._leaving]
        started = {cluster.id: self._started(cluster) for cluster in coming}
        self._probes = staying | {one: probe for one, probe in started.items() if probe}

    def tick(self) -> list[Report]:
        """What came of each, and the last of those that have ended."""
        return [probe.tick() for probe in self._probes.values()] + self._last_words()

    def stop(self) -> list[Report]:
        """End all, at the same time; their last reports."""
        for cluster_id, probe in self._probes.items():
            self._end(cluster_id, probe)
        self._probes = {}
        for thread in self._leaving.values():
            thread.join()
        return self._last_words()

    def _started(self, cluster: Cluster) -> ClusterProbe | None:
        """None while what it would show its cluster cannot be read."""
        probe = self._make(cluster)
        try:
            probe.start()
        except KafkaUnavailableError as error:
            if self._unreadable.get(cluster.id) != str(error):
                _log.error("%s: not measured: %s", cluster.id, error)
            self._unreadable[cluster.id] = str(error)
            return None
        self._unreadable.pop(cluster.id, None)
        return probe

    def _end(self, cluster_id: str, probe: ClusterProbe) -> None:
        thread = threading.Thread(target=lambda: self._left.put(probe.stop()), name=f"{cluster_id}-ending")
        thread.start()
        self._leaving[cluster_id] = thread

    def _last_words(self) -> list[Report]:
        reports = []
        while not self._left.empty():
            reports.append(self._left.get())
        return reports
