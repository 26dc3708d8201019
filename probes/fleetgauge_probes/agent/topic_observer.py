"""Periodic observation of a cluster's probe topic: partitions, demotions, warm-ups and reconciliation."""

import logging
import threading
from collections.abc import Callable, Mapping, Set
from functools import partial

from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaRequestRejectedError,
    KafkaUnavailableError,
    TopicMetadata,
)
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_probes.agent.cluster_state import ClusterState
from fleetgauge_probes.agent.demotions import DemotionCache
from fleetgauge_probes.agent.probe_receiver import ProbeReceiver
from fleetgauge_probes.agent.probe_sender import ProbeSender
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.topic_plan import TOPIC, HomeBroker, map_home_partitions

_log = logging.getLogger("fleetgauge.probe")

_INTERVAL_S = 1.0


class TopicObserver:
    """Describes the probe topic every second, applies it to the cluster's state and reconciles it."""

    def __init__(
        self,
        state: ClusterState,
        admin: ClusterAdmin,
        demotions: DemotionCache,
        sender: ProbeSender,
        receiver: ProbeReceiver,
        uptime_ns: Callable[[], int],
    ) -> None:
        """Prepare the observer; ``admin`` must be started before ``run``."""
        self._state = state
        self._admin = admin
        self._demotions = demotions
        self._sender = sender
        self._receiver = receiver
        self._uptime_ns = uptime_ns
        self._reconciler = Reconciler(admin, uptime_ns)

    @property
    def pending_actions(self) -> int:
        """How many changes to the probe topic are due but will not be made by the agent."""
        return self._reconciler.pending_actions

    def run(self, stopping: threading.Event) -> None:
        """Observe the topic every second until ``stopping`` is set."""
        while not stopping.wait(_INTERVAL_S):
            try:
                self._observe()
            except KafkaUnavailableError as error:
                _log.info("%s: %s", self._state.cluster.id, error)

    def _observe(self) -> None:
        topic = self._describe_topic()
        if topic:
            self._demotions.refresh(self._find_brokers_without_home(topic.partitions), self._uptime_ns())
        now_ns = self._uptime_ns()
        state = self._state
        with state.lock:
            demoted = self._demoted_brokers()
            homes = [
                HomeBroker(broker_id, broker.rack, broker_id in demoted)
                for broker_id, broker in state.registered.items()
            ]
            responding = frozenset(
                broker_id
                for broker_id in state.registered
                if state.connections.is_responding(broker_id, now_ns)
            )
            state.adopt_topic(topic, demoted, now_ns)
            warming_up = {broker_id: state.homes[broker_id] for broker_id in state.warm_ups}
        for broker_id, partition in warming_up.items():
            self._sender.send_warm_up(broker_id, partition)
        reconcile = partial(
            self._reconciler.reconcile,
            state.cluster,
            homes,
            responding,
            topic.partitions if topic else None,
        )
        follow = partial(self._receiver.follow_topic, topic, self._admin)
        # A deleted topic is created first, else probes are received first. Neither waits for the other to
        # succeed: the controllers may be unavailable for long, or a partition without a leader.
        first, second = (follow, reconcile) if topic else (reconcile, follow)
        try:
            first()
        finally:
            second()

    def _describe_topic(self) -> TopicMetadata | None:
        """Return the topic; None if it does not exist."""
        try:
            topic = self._admin.describe_topic(TOPIC)
        except KafkaUnavailableError as error:
            is_unauthorized = isinstance(error, KafkaRequestRejectedError)
            login_fault = AgentFault.CREDENTIALS if self._state.logins.is_invalid else None
            self._state.topic_fault = AgentFault.RIGHTS if is_unauthorized else login_fault
            raise
        self._state.topic_fault = None
        return topic

    def _demoted_brokers(self) -> frozenset[int]:
        return self._demotions.demoted | frozenset(self._state.cluster.demoted)

    def _find_brokers_without_home(self, topic: Mapping[int, PartitionMetadata]) -> Set[int]:
        with self._state.lock:
            return self._state.registered.keys() - map_home_partitions(topic, self._demoted_brokers()).keys()
