"""Looks at one cluster again and again, and publishes what has changed."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from threading import Event

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import BrokerAddress, ClusterReader, HeldConnections, KafkaUnavailableError
from fleetgauge_core.metadata import ClusterObservation, ConnectionEvent, ConnectionEventKind, ObservedBroker
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.observer_metrics import ObserverMetrics
from fleetgauge_operations.changes.plan.change_records import build_end, build_record
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from fleetgauge_operations.changes.plan.resume import resume
from fleetgauge_operations.changes.throttle_owners import CompleteChanges

_log = logging.getLogger("fleetgauge.observe")

LOOK_EVERY_S = 15.0
#: While a broker is down or has just come back, its registration is looked at more often.
_FOLLOW_EVERY_S = 1.0
_GATHER_S = 0.5
_SIZES_EVERY_S = 300.0
#: Of a cluster that cannot be looked at for long.
_MAX_EVENTS = 10_000


class ChangeObserver:
    """The observer of one cluster, for a thread of its own."""

    def __init__(
        self,
        cluster_id: str,
        access: ClusterAccess,
        clock: Callable[[], datetime],
        publish: Callable[[ClusterChange], None],
        complete: CompleteChanges,
        metrics: ObserverMetrics,
        lasting: Iterable[ClusterChange] = (),
    ) -> None:
        """``lasting`` are the recorded changes of the cluster that have not ended."""
        self._cluster_id = cluster_id
        self._clock = clock
        self._publish = publish
        self._complete = complete
        self._metrics = metrics
        self._wakeup = Event()
        self._reader = ClusterReader(access, clock)
        self._connections = HeldConnections(access, clock, self._wakeup.set)
        self._addresses: dict[int, BrokerAddress] = {}
        self._history = ObservedHistory()
        self._lasting = {record.change_id: record for record in lasting}
        self._sizes_due_s = 0.0
        self._look_due_s = 0.0
        self._events: tuple[ConnectionEvent, ...] = ()
        """What happened to connections since the last look that succeeded."""
        self._stopping = Event()

    def run(self) -> None:
        """Look at the cluster every 15 s until ``stop`` is called."""
        self._connections.start()
        try:
            while not self._stopping.is_set():
                if time.monotonic() >= self._look_due_s:
                    self._look_due_s = time.monotonic() + LOOK_EVERY_S
                    is_successful = self._look()
                else:
                    is_successful = self._follow_brokers()
                self._wait(is_successful)
        finally:
            self._connections.stop()
            self._reader.close()

    def stop(self) -> None:
        """Let ``run`` end, after a request that it waits for; nothing more is published."""
        self._stopping.set()
        self._wakeup.set()

    def _wait(self, is_successful: bool) -> None:
        """Wait until the cluster is to be looked at again; at least a second after a look that failed."""
        if not is_successful:
            self._stopping.wait(_FOLLOW_EVERY_S)
        elif self._is_broker_back():
            # What it holds by now tells whether it was replaced.
            self._look_due_s = 0.0
            return
        while (remaining_s := self._look_due_s - time.monotonic()) > 0 and not self._stopping.is_set():
            if self._history.connections.expects_change_at(self._clock()):
                self._wakeup.wait(min(remaining_s, _FOLLOW_EVERY_S))
                self._wakeup.clear()
                return
            is_woken = self._wakeup.wait(remaining_s)
            self._wakeup.clear()
            if is_woken:
                # Several brokers may lose their connections within a moment.
                self._stopping.wait(_GATHER_S)
                return

    def _look(self) -> bool:
        """Look at all of the cluster; return whether it answered."""
        self._take_events()
        with_sizes = self._may_be_replaced() or time.monotonic() >= self._sizes_due_s
        try:
            observation = self._reader.read(with_sizes)
        except KafkaUnavailableError as error:
            if not self._stopping.is_set():
                self._metrics.record_failure(self._cluster_id, str(error))
            return False
        if with_sizes:
            self._sizes_due_s = time.monotonic() + _SIZES_EVERY_S
        if not self._stopping.is_set():
            self._metrics.record_look(self._cluster_id, observation.at, observation.failures)
            self._take(observation)
        return True

    def _follow_brokers(self) -> bool:
        """Look at the brokers alone; a failure is reported by the next whole look, if it lasts."""
        self._take_events()
        try:
            observation = self._reader.read_brokers()
        except KafkaUnavailableError as error:
            _log.debug("%s: %s", self._cluster_id, error)
            return False
        # A cluster that was made anew is looked at as a whole first.
        if observation.kafka_cluster_uuid == self._history.kafka_cluster_uuid and not self._stopping.is_set():
            self._take(observation)
        return True

    def _is_broker_back(self) -> bool:
        """Return whether a broker came back since the last whole look."""
        parts, outages = self._history.parts, self._history.connections.outages.values()
        return any(outage.back_at and not parts.has_looked_since(outage.back_at) for outage in outages)

    def _may_be_replaced(self) -> bool:
        """Return whether the size of what a broker holds may tell that it was replaced."""
        outages = self._history.connections.outages.values()
        return any(outage.opened_at for outage in outages) or any(
            event.kind is ConnectionEventKind.OPENED for event in self._events
        )

    def _take_events(self) -> None:
        """Take note of what happened before a look: it may not see what happens while it reads."""
        self._events = (*self._events, *self._connections.take_events())[-_MAX_EVENTS:]

    def _begin(self, observation: ClusterObservation) -> None:
        """Begin to follow a cluster, or the one that has taken its place."""
        resumed = resume(observation.kafka_cluster_uuid, self._lasting.values())
        self._history = resumed.history
        for record in resumed.unmatched:
            self._record(build_end(record, observation.at))

    def _record(self, record: ClusterChange) -> None:
        if record.ends is None:
            self._lasting[record.change_id] = record
        else:
            self._lasting.pop(record.change_id, None)
        self._metrics.count_change(self._cluster_id, record.kind)
        self._publish(record)

    def _take(self, observation: ClusterObservation) -> None:
        if observation.kafka_cluster_uuid != self._history.kafka_cluster_uuid:
            self._begin(observation)
        self._history, changes = compare(self._history, observation, self._events)
        self._events = ()
        if observation.brokers is not None:
            self._hold(observation.brokers)
        if any(change.kind is ChangeKind.BROKER_VERSION for change in changes):
            # A client keeps to the requests that the brokers knew when it was created.
            self._reader.close()
        for change in self._complete(self._cluster_id, changes):
            self._record(
                build_record(change, self._cluster_id, observation.kafka_cluster_uuid, observation.at)
            )

    def _hold(self, brokers: Mapping[int, ObservedBroker]) -> None:
        """Hold a connection to every registered broker, at its last address while it has none."""
        self._addresses = {
            broker_id: BrokerAddress(broker.host, broker.port) if broker.host else self._addresses[broker_id]
            for broker_id, broker in brokers.items()
            if broker.host or broker_id in self._addresses
        }
        self._connections.hold(self._addresses)
