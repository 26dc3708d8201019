"""What is known of one cluster, shared by the threads that probe it."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import TopicMetadata
from fleetgauge_core.metadata import BrokerRegistration, PartitionMetadata
from fleetgauge_probes.agent.broker_progress import BrokerProgress
from fleetgauge_probes.agent.cold_connections import ColdConnectionTracker
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility, assess_eligibility
from fleetgauge_probes.agent.probe_tracker import ProbeTracker
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.schedule import MinuteClock, ProbeSchedule, compute_phase_ns
from fleetgauge_probes.agent.throttles import QuotaThrottles
from fleetgauge_probes.agent.topic_plan import map_home_partitions

_log = logging.getLogger("fleetgauge.probe")

T = TypeVar("T")

_WARM_UP_TIMEOUT_NS = 10_000_000_000
#: A lock that is released and taken again at once starves the threads that wait for it, so an iteration
#: sleeps for _YIELD_S after every _YIELD_AFTER elements.
_YIELD_AFTER = 10
_YIELD_S = 0.001


class BrokerLeg(NamedTuple):
    """One leg of a broker."""

    broker_id: int
    leg: Leg


@dataclass(slots=True)
class WarmUp:
    """Progress of a home broker's warm-up, during which connections are opened and nothing is counted."""

    since_ns: int
    acknowledged: set[Leg] = field(default_factory=set)
    received: bool = False

    def is_finished(self, now_ns: int) -> bool:
        """Return whether every leg works, or 10 s have passed and the failure itself must be measured."""
        is_complete = self.received and len(self.acknowledged) == len(Leg)
        return is_complete or now_ns - self.since_ns > _WARM_UP_TIMEOUT_NS


class ClusterState:
    """State of one cluster's probing.

    ``lock`` guards all attributes except ``cluster`` and ``unreachable_reason``, which are replaced as a
    whole and read without it. No thread blocks or iterates over all brokers while it holds the lock, because
    a probe that is due waits for it.
    """

    def __init__(self, cluster: Cluster, clock: MinuteClock, pauses: ProcessPauses) -> None:
        """Start without any knowledge of the cluster's brokers."""
        self.cluster = cluster
        self.unreachable_reason: str | None = None
        """Why the cluster did not list its brokers when last asked; None if it did."""
        self.lock = threading.Lock()
        self.kafka_cluster_uuid = ""
        self.registered: dict[int, BrokerRegistration] = {}
        self.partitions: Mapping[int, PartitionMetadata] = {}
        self.homes: dict[int, int] = {}
        """The home partition of each registered broker that has one."""
        self.connections = ColdConnectionTracker(cluster.id, pauses)
        self.progress = BrokerProgress()
        self.throttles = QuotaThrottles()
        self.warm_ups: dict[int, WarmUp] = {}
        self.trackers: dict[BrokerLeg, ProbeTracker] = {}
        self.schedule = ProbeSchedule(clock)
        self.expected_brokers: dict[int, tuple[int, ...]] = {}
        """The brokers that were registered when a minute began, by the minute's index."""
        self.record_sequences: dict[tuple[BrokerLeg, int], int] = {}
        """The sequence of the record of each open minute, by leg and minute index."""
        self._pauses = pauses
        self._topic_id: str | None = None

    def iterate_locked(self, elements: Iterable[T]) -> Iterator[T]:
        """Yield each element while holding the lock, which is released in between."""
        for number, element in enumerate(elements, 1):
            with self.lock:
                yield element
            if number % _YIELD_AFTER == 0:
                time.sleep(_YIELD_S)

    def is_in_sync(self, broker_id: int) -> bool:
        """Return whether a broker is in the ISR of its home partition. The caller holds the lock."""
        partition = self.partitions.get(self.homes.get(broker_id, -1))
        return partition is not None and broker_id in partition.in_sync

    def assess_home(self, broker_id: int, leads: bool, now_ns: int) -> LeaderEligibility:
        """Return the eligibility of a home broker for the leader leg. The caller holds the lock."""
        responding = self.connections.is_responding(broker_id, now_ns)
        return assess_eligibility(leads, self.is_in_sync(broker_id), responding)

    def adopt_topic(self, topic: TopicMetadata | None, demoted: frozenset[int], now_ns: int) -> None:
        """Update partitions, homes and warm-ups from the probe topic, None while it does not exist.

        Brokers whose warm-up has finished are scheduled. The caller holds the lock.
        """
        if topic:
            # A broker may not know a partition yet that another one has described. Those of a topic that was
            # recreated are others, and may be fewer.
            known = self.partitions if topic.topic_id == self._topic_id else {}
            self._topic_id, self.partitions = topic.topic_id, {**known, **topic.partitions}
        homes = map_home_partitions(self.partitions, demoted)
        self.homes = {broker: partition for broker, partition in homes.items() if broker in self.registered}
        unscheduled = [broker for broker in self.homes if BrokerLeg(broker, Leg.CLIENT) not in self.trackers]
        # A broker that loses its home partition during its warm-up starts over with the next one.
        self.warm_ups = {broker: self.warm_ups.get(broker, WarmUp(now_ns)) for broker in unscheduled}
        finished = [broker for broker, warm_up in self.warm_ups.items() if warm_up.is_finished(now_ns)]
        for broker_id in finished:
            del self.warm_ups[broker_id]
            self._schedule_broker(broker_id, now_ns)

    def _schedule_broker(self, broker_id: int, now_ns: int) -> None:
        position = sorted(self.registered).index(broker_id)
        for leg in Leg:
            self.trackers[BrokerLeg(broker_id, leg)] = ProbeTracker(leg, broker_id, self._pauses)
            phase_ns = compute_phase_ns(position, len(self.registered), leg)
            self.schedule.add_leg(broker_id, leg, phase_ns, now_ns)
        _log.info("%s: probing broker %d", self.cluster.id, broker_id)
