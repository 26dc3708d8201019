"""The process of `fleetgauge observe`: one of several observers of a shard is the leader.

What the observers see is held until this process has proved that it is the leader. While it cannot, because
the telemetry cluster does not answer, it goes on observing. If it is elected again, it publishes what it has
held, unless another observer has led meanwhile.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import Cluster, ClusterAccess, Telemetry
from fleetgauge_core.fleet.rights import OBSERVE_GROUP
from fleetgauge_core.kafka import (
    KafkaUnavailableError,
    LeaderElection,
    Leadership,
    LeadershipStatus,
    RecordProducer,
    TopicKeeper,
    keep_changes_topic,
)
from fleetgauge_core.kafka.credentials_monitor import CredentialsMonitor, wait_for_readable_credentials
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shard import Shard
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.changes.change_observer import ChangeObserver
from fleetgauge_operations.changes.change_topic import read_change_records, select_lasting
from fleetgauge_operations.changes.observer_metrics import ObserverMetrics
from fleetgauge_operations.changes.plan.change_records import OBSERVER
from fleetgauge_operations.changes.throttle_owners import CompleteChanges

_log = logging.getLogger("fleetgauge.observe")

_CLIENT_ID = "fleetgauge-observe"
_POLL_S = 0.5
_RETRY_S = 2.0
_STOP_S = 8
#: How long a process that has lost its leadership goes on observing: it may be elected again.
_GRACE_S = 30.0
#: Of a telemetry cluster that does not answer for hours.
_MAX_HELD = 20_000
_CREDENTIALS_REMEDY = "provide it: until then the cluster is not observed"


@dataclass(frozen=True, slots=True)
class _Running:
    access: ClusterAccess
    observer: ChangeObserver
    thread: Thread


@dataclass(slots=True)
class ObserveController:
    """Runs the observers of a shard's clusters while it leads those of the shard.

    ``select_clusters`` returns the clusters by now; ``show`` is called with every record that is published.
    """

    telemetry: Telemetry
    shard: Shard
    select_clusters: Callable[[], tuple[Cluster, ...]]
    complete: CompleteChanges
    clock: Callable[[], datetime]
    health: ProcessHealth
    show: Callable[[ClusterChange], None]
    published: int = 0
    _held: deque[ClusterChange] = field(default_factory=lambda: deque(maxlen=_MAX_HELD))
    _running: dict[str, _Running] = field(default_factory=dict)
    _own_events: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_HELD))
    _held_at: datetime | None = None
    """When this process was last the leader for certain."""
    _adopted: Leadership | None = None
    _lasting: dict[str, ClusterChange] = field(default_factory=dict)
    _logged_error: str = ""
    _monitor: CredentialsMonitor = field(default_factory=CredentialsMonitor)

    def run(self, shutdown: ShutdownFlag) -> None:
        """Run until ``shutdown`` is set. Raises: KafkaUnavailableError if the topic cannot be created."""
        remedy = "provide it: until then nothing is observed"
        if not wait_for_readable_credentials(self.telemetry.access, self.health, shutdown, remedy):
            return
        keeper = keep_changes_topic(self.telemetry)
        keeper.ensure()
        group = OBSERVE_GROUP + self.shard.suffix
        election = LeaderElection(self.telemetry.access, self.telemetry.topics.changes.name, group)
        # Without a time-out: a change is delivered once the telemetry cluster is back.
        producer = RecordProducer(self.telemetry.access, _CLIENT_ID, delivery_timeout_s=None)
        metrics = ObserverMetrics(self.health.registry)
        with ExitStack() as stack:
            stopping = Event()
            stack.callback(stopping.set)
            Thread(target=keeper.run, args=(stopping,), name="changes-topic", daemon=True).start()
            election.start()
            # After the last record: the next leader reads the topic.
            stack.callback(election.stop)
            producer.start()
            stack.callback(_stop_producer, producer)
            stack.callback(self._end, producer, metrics)
            self._run(election, producer, keeper, metrics, shutdown)

    def _run(
        self,
        election: LeaderElection,
        producer: RecordProducer,
        keeper: TopicKeeper,
        metrics: ObserverMetrics,
        shutdown: ShutdownFlag,
    ) -> None:
        led_s, recreations = time.monotonic(), keeper.recreations
        while not shutdown.is_set():
            self.health.record_heartbeat()
            if recreations != (recreations := keeper.recreations):
                producer.renew()
            leadership = election.wait_for_leadership(_POLL_S)
            # An observer on standby is ready as well.
            self.health.mark_ready()
            if leadership:
                led_s = time.monotonic()
            elif self._running and time.monotonic() - led_s > _GRACE_S:
                _log.info("another observer is the leader")
                self._begin_anew(metrics)
            if leadership and leadership is not self._adopted and not self._adopt(leadership, metrics):
                shutdown.wait(_RETRY_S)
            elif leadership and not leadership.is_lost:
                self._follow_fleet(metrics)
                self._publish(producer)
                shutdown.wait(_POLL_S)

    def _adopt(self, leadership: Leadership, metrics: ObserverMetrics) -> bool:
        """Begin a leadership; return whether the topic could be read, which shows who has led before."""
        try:
            records = read_change_records(self.telemetry)
        except KafkaUnavailableError as error:
            if str(error) != self._logged_error:
                _log.warning("earlier changes cannot be read: %s", error)
            self._logged_error = str(error)
            return False
        self._logged_error = ""
        if self._has_other_led(records):
            _log.info("another observer has led meanwhile")
            self._begin_anew(metrics)
        self._lasting = {record.change_id: record for record in select_lasting(records)}
        self._adopted = leadership
        _log.info("observing the clusters of this shard")
        return True

    def _has_other_led(self, records: Sequence[ClusterChange]) -> bool:
        """Return whether another observer has published a change of these clusters since this one led."""
        held_at = self._held_at
        return held_at is not None and any(
            record.source == OBSERVER
            and record.at >= held_at
            and record.cluster_id in self._running
            and record.event_id not in self._own_events
            for record in records
        )

    def _begin_anew(self, metrics: ObserverMetrics) -> None:
        """Stop all observers: what they have seen since was, or will be, seen by another one."""
        self._stop_all(metrics)
        self._held.clear()

    def _publish(self, producer: RecordProducer) -> None:
        """Publish what is held if this process is the leader for certain."""
        now = self.clock()
        if self._adopted is None or self._adopted.confirm() is not LeadershipStatus.HELD:
            return
        self._held_at = now
        while self._held:
            record = self._held.popleft()
            self.published += 1
            self._own_events.append(record.event_id)
            if record.ends is None:
                self._lasting[record.change_id] = record
            else:
                self._lasting.pop(record.change_id, None)
            self.show(record)
            producer.send(self.telemetry.topics.changes.name, record.cluster_id or "", record.encode())

    def _end(self, producer: RecordProducer, metrics: ObserverMetrics) -> None:
        self._stop_all(metrics)
        self._publish(producer)
        if self._held:
            _log.error(
                "%d changes were seen, but not published: the telemetry cluster did not answer",
                len(self._held),
            )

    def _hold(self, record: ClusterChange) -> None:
        if len(self._held) == _MAX_HELD - 1:
            _log.error("more than %d changes wait for the telemetry cluster: the oldest are lost", _MAX_HELD)
        self._held.append(record)

    def _follow_fleet(self, metrics: ObserverMetrics) -> None:
        """Start and stop observers as the fleet file says; one that runs keeps what it knows."""
        now = self.clock()
        accesses = {
            cluster.id: cluster.access for cluster in self.select_clusters() if cluster.is_in_scope_at(now)
        }
        unreadable = self._monitor.find_unreadable(accesses)
        self.health.parts.update(
            "cluster",
            PartFault.CREDENTIALS,
            {name: f"{message}; {_CREDENTIALS_REMEDY}" for name, message in unreadable.items()},
        )
        for cluster_id, running in tuple(self._running.items()):
            if accesses.get(cluster_id) != running.access:
                # It ends by itself, also if it waits for a hung cluster.
                running.observer.stop()
                del self._running[cluster_id]
                metrics.forget(cluster_id)
        self._start(
            {
                cluster_id: access
                for cluster_id, access in accesses.items()
                if cluster_id not in unreadable and cluster_id not in self._running
            },
            metrics,
        )

    def _start(self, accesses: Mapping[str, ClusterAccess], metrics: ObserverMetrics) -> None:
        for cluster_id, access in accesses.items():
            lasting = [record for record in self._lasting.values() if record.cluster_id == cluster_id]
            observer = ChangeObserver(
                cluster_id, access, self.clock, self._hold, self.complete, metrics, lasting
            )
            thread = Thread(target=observer.run, name=f"observe-{cluster_id}", daemon=True)
            self._running[cluster_id] = _Running(access, observer, thread)
            thread.start()

    def _stop_all(self, metrics: ObserverMetrics) -> None:
        for running in self._running.values():
            running.observer.stop()
        deadline_s = time.monotonic() + _STOP_S
        for cluster_id, running in self._running.items():
            # One that waits for a hung cluster ends with the process.
            running.thread.join(max(0.0, deadline_s - time.monotonic()))
            metrics.forget(cluster_id)
        self._running.clear()


def _stop_producer(producer: RecordProducer) -> None:
    if lost := producer.stop(_STOP_S):
        _log.error("%d changes were not delivered to the telemetry cluster", lost)
