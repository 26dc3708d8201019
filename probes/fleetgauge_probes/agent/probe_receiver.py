"""Consumption of the probes of one cluster."""

import threading
from collections.abc import Callable
from uuid import UUID

from fleetgauge_core.contract import Leg
from fleetgauge_core.kafka import ClusterAdmin, FollowedReader, TopicMetadata
from fleetgauge_probes.agent.cluster_state import BrokerLeg, ClusterState
from fleetgauge_probes.agent.payload import decode_payload

_POLL_S = 0.2


class ProbeReceiver:
    """Consumes the probe topic and records the receipt of this cluster probe's own messages."""

    def __init__(
        self, probe_id: UUID, state: ClusterState, reader: FollowedReader, uptime_ns: Callable[[], int]
    ) -> None:
        """Prepare the receiver; ``reader`` must be started before ``run``."""
        self._probe_id = probe_id
        self._state = state
        self._reader = reader
        self._uptime_ns = uptime_ns
        self._is_assigned = False

    def follow_topic(self, topic: TopicMetadata | None, admin: ClusterAdmin) -> None:
        """Consume the first topic from its end, and whatever replaces or extends it from the beginning.

        ``topic`` is None while it does not exist. Raises: KafkaUnavailableError; the next call tries again.
        """
        if not self._is_assigned and topic:
            self._is_assigned = True
            self._reader.assign(topic.partitions)
        if self._is_assigned:
            self._reader.check(topic, admin)

    def run(self, stopping: threading.Event) -> None:
        """Consume until ``stopping`` is set."""
        while not stopping.is_set():
            record = self._reader.poll(_POLL_S)
            received_ns = self._uptime_ns()
            if record:
                self.record_receipt(record.partition, record.value, received_ns)

    def record_error(self, partition: int, code: str) -> None:
        """Record that the consumer cannot read a partition."""
        with self._state.lock:
            self._state.record_fetch(partition, self._uptime_ns(), code)

    def record_receipt(self, partition: int, payload: bytes, received_ns: int) -> None:
        """Record a message; one of another agent shows only that its partition can be read."""
        probe = decode_payload(self._probe_id, payload)
        with self._state.lock:
            self._state.record_fetch(partition, received_ns, None)
            if not probe:
                return
            if probe.leg is Leg.CLIENT:
                tracker = self._state.trackers.get(BrokerLeg(probe.broker_id, probe.leg))
                if tracker:
                    tracker.record_receipt(probe.sequence, received_ns)
            elif probe.leg is None and probe.broker_id in self._state.warm_ups:
                self._state.warm_ups[probe.broker_id].received = True
