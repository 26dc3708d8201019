"""The process of `fleetgauge observe`: one of several observers of a shard is the leader."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import Cluster, ClusterAccess, Telemetry
from fleetgauge_core.fleet.rights import OBSERVE_GROUP
from fleetgauge_core.kafka import LeaderElection, Leadership, RecordProducer, keep_changes_topic
from fleetgauge_core.kafka.credentials_monitor import CredentialsMonitor, wait_for_readable_credentials
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shard import Shard
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.changes.change_observer import ChangeObserver
from fleetgauge_operations.changes.observer_metrics import ObserverMetrics
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

_log = logging.getLogger("fleetgauge.observe")

_CLIENT_ID = "fleetgauge-observe"
_POLL_S = 0.5
_STOP_S = 8
_CREDENTIALS_REMEDY = "provide it: until then the cluster is not observed"


@dataclass(frozen=True, slots=True)
class _Running:
    access: ClusterAccess
    observer: ChangeObserver
    thread: Thread


@dataclass(slots=True)
class ObserveController:
    """Runs the observers of a shard's clusters while it leads those of the shard.

    ``select_clusters`` returns the clusters by now; ``show`` is called with every record.
    """

    telemetry: Telemetry
    shard: Shard
    select_clusters: Callable[[], tuple[Cluster, ...]]
    complete: Callable[[str, ObservedChange], ObservedChange]
    clock: Callable[[], datetime]
    health: ProcessHealth
    show: Callable[[ClusterChange], None]
    published: int = 0
    _running: dict[str, _Running] = field(default_factory=dict)

    def run(self, shutdown: ShutdownFlag) -> None:
        """Run until ``shutdown`` is set. Raises: KafkaUnavailableError if the topic cannot be created."""
        remedy = "provide it: until then nothing is observed"
        if not wait_for_readable_credentials(self.telemetry.access, self.health, shutdown, remedy):
            return
        keeper = keep_changes_topic(self.telemetry)
        keeper.ensure()
        stopping = Event()
        keeping = Thread(target=keeper.run, args=(stopping,), name="changes-topic", daemon=True)
        group = OBSERVE_GROUP + self.shard.suffix
        election = LeaderElection(self.telemetry.access, self.telemetry.topics.changes.name, group)
        metrics = ObserverMetrics(self.health.registry)
        keeping.start()
        election.start()
        try:
            while not shutdown.is_set():
                self.health.record_heartbeat()
                leadership = election.wait_for_leadership(_POLL_S)
                # An observer on standby is ready as well.
                self.health.mark_ready()
                if leadership:
                    self._lead(leadership, metrics, shutdown)
        finally:
            election.stop()
            stopping.set()
            keeping.join()

    def _lead(self, leadership: Leadership, metrics: ObserverMetrics, shutdown: ShutdownFlag) -> None:
        _log.info("observing the clusters of this shard")
        # Without a time-out: a change is delivered once the telemetry cluster is back.
        producer = RecordProducer(self.telemetry.access, _CLIENT_ID, delivery_timeout_s=None)
        producer.start()
        monitor = CredentialsMonitor()
        topic = self.telemetry.topics.changes.name

        def publish(record: ClusterChange) -> None:
            self.published += 1
            self.show(record)
            producer.send(topic, record.cluster_id or "", record.encode())

        try:
            while not (shutdown.is_set() or leadership.is_lost):
                self.health.record_heartbeat()
                self._follow_fleet(monitor, metrics, publish)
                shutdown.wait(_POLL_S)
        finally:
            self._stop(tuple(self._running), metrics)
            if lost := producer.stop(_STOP_S):
                _log.error("%d changes were not delivered to the telemetry cluster", lost)

    def _follow_fleet(
        self,
        monitor: CredentialsMonitor,
        metrics: ObserverMetrics,
        publish: Callable[[ClusterChange], None],
    ) -> None:
        """Start and stop observers as the fleet file says."""
        now = self.clock()
        accesses = {
            cluster.id: cluster.access for cluster in self.select_clusters() if cluster.is_in_scope_at(now)
        }
        unreadable = monitor.find_unreadable(accesses)
        self.health.parts.update(
            "cluster",
            PartFault.CREDENTIALS,
            {name: f"{message}; {_CREDENTIALS_REMEDY}" for name, message in unreadable.items()},
        )
        wanted = {
            cluster_id: access for cluster_id, access in accesses.items() if cluster_id not in unreadable
        }
        self._stop(
            [
                cluster_id
                for cluster_id, running in self._running.items()
                if wanted.get(cluster_id) != running.access
            ],
            metrics,
        )
        self._start(wanted, metrics, publish)

    def _start(
        self,
        wanted: Mapping[str, ClusterAccess],
        metrics: ObserverMetrics,
        publish: Callable[[ClusterChange], None],
    ) -> None:
        for cluster_id, access in wanted.items():
            if cluster_id in self._running:
                continue
            observer = ChangeObserver(cluster_id, access, self.clock, publish, self.complete, metrics)
            thread = Thread(target=observer.run, name=f"observe-{cluster_id}", daemon=True)
            self._running[cluster_id] = _Running(access, observer, thread)
            thread.start()

    def _stop(self, cluster_ids: Collection[str], metrics: ObserverMetrics) -> None:
        stopped = {cluster_id: self._running.pop(cluster_id) for cluster_id in cluster_ids}
        for running in stopped.values():
            running.observer.stop()
        deadline_s = time.monotonic() + _STOP_S
        for cluster_id, running in stopped.items():
            # One that waits for a hung cluster ends on its own.
            running.thread.join(max(0.0, deadline_s - time.monotonic()))
            metrics.forget(cluster_id)
