"""Probes every cluster that this agent has; they come, go and change while it runs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue

from fleetgauge_probes.agent.cluster_probe import ClusterProbe, Report
from fleetgauge_probes.fleet import Cluster


class FleetProbe:
    """For one thread. No cluster waits for another, not even for one that takes long to end."""

    def __init__(self, make: Callable[[Cluster], ClusterProbe]) -> None:
        self._make = make
        self._clusters: Sequence[Cluster] = ()
        self._probes: Mapping[str, ClusterProbe] = {}
        self._leaving: dict[str, threading.Thread] = {}
        self._left: SimpleQueue[Report] = SimpleQueue()

    @property
    def probes(self) -> Mapping[str, ClusterProbe]:
        """Those of the clusters that are measured now, by id. Replaced, never changed: others read it."""
        return self._probes

    def measure(self, clusters: Sequence[Cluster]) -> None:
        """From now on these. One that is reached elsewhere begins anew, when its old probe has ended."""
        self._leaving = {one: thread for one, thread in self._leaving.items() if thread.is_alive()}
        if clusters == self._clusters and all(one.id in self._probes for one in clusters):
            return
        self._clusters = clusters
        wanted = {cluster.id: cluster for cluster in clusters}
        staying = {}
        for cluster_id, probe in self._probes.items():
            cluster = wanted.get(cluster_id)
            if cluster is None or cluster.bootstrap != probe.bootstrap:
                self._end(cluster_id, probe)
            else:
                probe.configure(cluster)
                staying[cluster_id] = probe
        coming = [one for one in clusters if one.id not in staying and one.id not in self._leaving]
        self._probes = staying | {cluster.id: self._started(cluster) for cluster in coming}

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

    def _started(self, cluster: Cluster) -> ClusterProbe:
        probe = self._make(cluster)
        probe.start()
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
