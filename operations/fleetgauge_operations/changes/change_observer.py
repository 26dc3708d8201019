"""Looks at one cluster again and again, and publishes what has changed."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Event

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import BrokerAddress, ClusterReader, HeldConnections, KafkaUnavailableError
from fleetgauge_core.metadata import ClusterObservation, ObservedBroker
from fleetgauge_operations.changes.change_records import build_record
from fleetgauge_operations.changes.observer_metrics import ObserverMetrics
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

_log = logging.getLogger("fleetgauge.observe")

LOOK_EVERY_S = 15.0
#: While a broker is down or has just come back, its registration is looked at more often.
_FOLLOW_EVERY_S = 1.0
_SIZES_EVERY_S = 300.0


class ChangeObserver:
    """The observer of one cluster, for a thread of its own."""

    def __init__(
        self,
        cluster_id: str,
        access: ClusterAccess,
        clock: Callable[[], datetime],
        publish: Callable[[ClusterChange], None],
        complete: Callable[[str, ObservedChange], ObservedChange],
        metrics: ObserverMetrics,
    ) -> None:
        """``complete`` adds to a change of a cluster what the cluster itself does not tell."""
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
        self._sizes_due_s = 0.0
        self._stopping = Event()

    def run(self) -> None:
        """Look at the cluster every 15 s until ``stop`` is called."""
        self._connections.start()
        try:
            while not self._stopping.is_set():
                looked_s = time.monotonic()
                self._look()
                while not self._stopping.is_set() and self._wait(looked_s + LOOK_EVERY_S):
                    self._follow_brokers()
        finally:
            self._connections.stop()
            self._reader.close()

    def stop(self) -> None:
        """Let ``run`` end, after a request that it waits for; nothing more is published."""
        self._stopping.set()
        self._wakeup.set()

    def _wait(self, due_s: float) -> bool:
        """Wait; return whether only the brokers are to be looked at, False when a whole look is due.

        One is due as soon as a broker is back: what it holds by then tells whether it was replaced.
        """
        now_s = time.monotonic()
        if now_s >= due_s or self._is_broker_back():
            return False
        follows = self._history.connections.expects_change_at(self._clock())
        self._wakeup.wait(min(due_s - now_s, _FOLLOW_EVERY_S if follows else LOOK_EVERY_S))
        self._wakeup.clear()
        return time.monotonic() < due_s

    def _look(self) -> None:
        with_sizes = self._is_broker_back() or time.monotonic() >= self._sizes_due_s
        try:
            observation = self._reader.read(with_sizes)
        except KafkaUnavailableError as error:
            self._metrics.record_failure(self._cluster_id, str(error))
            return
        if with_sizes:
            self._sizes_due_s = time.monotonic() + _SIZES_EVERY_S
        self._metrics.record_look(self._cluster_id, observation.at, observation.failures)
        self._take(observation)

    def _is_broker_back(self) -> bool:
        """Return whether a broker came back since the last whole look."""
        parts, outages = self._history.parts, self._history.connections.outages.values()
        return any(outage.opened_at and not parts.has_looked_since(outage.opened_at) for outage in outages)

    def _follow_brokers(self) -> None:
        """Look at the brokers alone; a failure is reported by the next whole look, if it lasts."""
        try:
            at, brokers = self._reader.read_brokers()
        except KafkaUnavailableError as error:
            _log.debug("%s: %s", self._cluster_id, error)
            return
        self._take(ClusterObservation(at, self._history.kafka_cluster_uuid, is_whole=False, brokers=brokers))

    def _take(self, observation: ClusterObservation) -> None:
        if self._stopping.is_set():
            # Another observer may be the leader by now.
            return
        self._history, changes = compare(self._history, observation, self._connections.take_events())
        if observation.brokers is not None:
            self._hold(observation.brokers)
        for change in changes:
            record = build_record(
                self._complete(self._cluster_id, change),
                self._cluster_id,
                observation.kafka_cluster_uuid,
                observation.at,
            )
            self._metrics.count_change(self._cluster_id, record.kind)
            self._publish(record)

    def _hold(self, brokers: Mapping[int, ObservedBroker]) -> None:
        """Hold a connection to every registered broker, at its last address while it has none."""
        self._addresses = {
            broker_id: BrokerAddress(broker.host, broker.port) if broker.host else self._addresses[broker_id]
            for broker_id, broker in brokers.items()
            if broker.host or broker_id in self._addresses
        }
        self._connections.hold(self._addresses)
