"""What is known of one cluster, shared by the threads that probe it."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import (
    AUTHENTICATION,
    NOT_RECEIVED,
    OWN_RESOURCES,
    PURGED_CODES,
    AgentFault,
    find_agent_fault,
)
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import ConnectionFailure, ConnectionMeasurement, LoginSurvey, TopicMetadata
from fleetgauge_core.metadata import BrokerRegistration, PartitionMetadata
from fleetgauge_probes.agent.agent_faults import ProbeFailure, RefusalJudge
from fleetgauge_probes.agent.broker_progress import BrokerProgress
from fleetgauge_probes.agent.cold_connections import AttemptTime, ColdConnectionTracker
from fleetgauge_probes.agent.failure_code import MSG_TIMED_OUT, TimeoutEvidence, explain_timeout
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

    ``lock`` guards all attributes except ``cluster``, ``unreachable_reason``, ``logins`` and ``topic_fault``,
    which are replaced as a whole and read without it. No thread blocks or iterates over all brokers while it
    holds the lock, because a probe that is due waits for it.
    """

    def __init__(self, cluster: Cluster, clock: MinuteClock, pauses: ProcessPauses) -> None:
        """Start without any knowledge of the cluster's brokers."""
        self.cluster = cluster
        self.unreachable_reason: str | None = None
        """Why the cluster did not list its brokers when last asked; None if it did."""
        self.logins = LoginSurvey()
        """Which brokers refused the agent's login when it was last refused; empty if it is accepted."""
        self.topic_fault: AgentFault | None = None
        """The agent's own fault by which the probe topic cannot be described."""
        self.lock = threading.Lock()
        self.kafka_cluster_uuid = ""
        self.registered: dict[int, BrokerRegistration] = {}
        self.partitions: Mapping[int, PartitionMetadata] = {}
        self.homes: dict[int, int] = {}
        """The home partition of each registered broker that has one; no two have the same."""
        tls = cluster.access.security.tls
        self.connections = ColdConnectionTracker(
            cluster.id, pauses, has_certificate=tls is not None and tls.certificate is not None
        )
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
        self._brokers_by_home: dict[int, int] = {}
        self._topic_id: str | None = None
        self._produce_refusals = {leg: RefusalJudge() for leg in Leg}
        self._fetch_refusals = RefusalJudge()
        self._refused_fetches: dict[int, str] = {}
        """The error of each partition that the consumer was refused and has not received from since."""

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
        """Return the eligibility of a home broker for the leader leg. The caller holds the lock.

        What the agent cannot see by a fault of its own does not speak against the broker.
        """
        is_fault_own = self.connections.latest_fault(broker_id) is not None
        responding = is_fault_own or self.connections.is_responding(broker_id, now_ns)
        in_sync = self.topic_fault is not None or self.is_in_sync(broker_id)
        return assess_eligibility(leads, in_sync, responding)

    # Failures, and whose fault they are: the caller holds the lock, unless stated otherwise -----

    def record_connection(
        self, broker: BrokerRegistration, result: ConnectionMeasurement | ConnectionFailure, at: AttemptTime
    ) -> None:
        """Record the result of a cold connection to a broker."""
        broker_id = broker.broker_id
        self.connections.record(broker, result, at)
        if self.connections.latest_failure(broker_id) and not self.connections.latest_fault(broker_id):
            self.throttles.end(broker_id, at.uptime_ns)

    def record_acceptance(self, broker_leg: BrokerLeg, at_ns: int) -> None:
        """Record that a probe was acknowledged."""
        self._produce_refusals[broker_leg.leg].record_acceptance(broker_leg.broker_id, at_ns)

    def explain_failure(self, broker_leg: BrokerLeg, code: str, at_ns: int) -> ProbeFailure:
        """Return the failure of a probe that the producer reported with this code."""
        if code == MSG_TIMED_OUT:
            return explain_timeout(code, self._find_timeout_evidence(broker_leg.broker_id))
        if code in PURGED_CODES:
            # The agent itself withdrew them, when the probe topic was recreated.
            return ProbeFailure(code, find_agent_fault(code))
        judge = self._produce_refusals[broker_leg.leg]
        return ProbeFailure(code, judge.find_fault(broker_leg.broker_id, code, at_ns))

    def record_fetch(self, partition: int, at_ns: int, error_code: str | None) -> None:
        """Record that the consumer received a record of a partition, or an error.

        The consumer reports an error of a partition only once, for as long as it lasts.
        """
        if error_code is None:
            self._refused_fetches.pop(partition, None)
            if (broker_id := self._brokers_by_home.get(partition)) is not None:
                self._fetch_refusals.record_acceptance(broker_id, at_ns)
        elif find_agent_fault(error_code):
            self._refused_fetches[partition] = error_code
            if (broker_id := self._brokers_by_home.get(partition)) is not None:
                self.review_fetches(BrokerLeg(broker_id, Leg.CLIENT), at_ns)

    def expire_overdue(self, broker_leg: BrokerLeg, now_ns: int) -> None:
        """Decide a leg's probes whose deadline has passed, by what is known of their broker."""
        tracker = self.trackers[broker_leg]
        is_refused = self.homes.get(broker_leg.broker_id, -1) in self._refused_fetches
        if is_refused or tracker.has_overdue(now_ns):
            tracker.expire_overdue(now_ns, self.review_fetches(broker_leg, now_ns))
        else:
            tracker.expire_overdue(now_ns)

    def review_fetches(self, broker_leg: BrokerLeg, now_ns: int) -> ProbeFailure:
        """Return why overdue probes of a leg were not received, and whether the agent is at fault.

        While the consumer is refused, the leg's tracker learns by whose fault.
        """
        broker_id = broker_leg.broker_id
        if broker_leg.leg is Leg.LEADER:
            return ProbeFailure(NOT_RECEIVED)
        refusal = self._refused_fetches.get(self.homes.get(broker_id, -1))
        if refusal and (tracker := self.trackers.get(broker_leg)):
            fault = self._fetch_refusals.find_fault(broker_id, refusal, now_ns)
            if fault:
                tracker.record_fault(now_ns, ProbeFailure(refusal, fault))
                return ProbeFailure(refusal, fault)
            tracker.clear_fault(now_ns)
        explained = explain_timeout(NOT_RECEIVED, self._find_timeout_evidence(broker_id))
        return explained if explained.fault else ProbeFailure(NOT_RECEIVED)

    def login_fault(self, broker_id: int) -> AgentFault | None:
        """Return CREDENTIALS if no broker lets the agent log in, and this one answers otherwise."""
        is_refused = self.logins.is_invalid and self.connections.latest_failure(broker_id) is None
        return AgentFault.CREDENTIALS if is_refused else None

    def list_agent_faults(self) -> dict[AgentFault, set[str]]:
        """Return the agent's own faults that hold now, with the failure codes that show them.

        The caller does not hold the lock.
        """
        faults: dict[AgentFault, set[str]] = {}
        with self.lock:
            brokers = tuple(self.registered)
        for broker_id in self.iterate_locked(brokers):
            for failure in self._find_broker_faults(broker_id):
                if failure.fault:
                    faults.setdefault(failure.fault, set()).add(failure.code)
        if self.logins.is_invalid:
            faults.setdefault(AgentFault.CREDENTIALS, set()).add(AUTHENTICATION)
        if self.unreachable_reason == ConnectionFailure.OWN_RESOURCES.value:
            faults.setdefault(AgentFault.HOST, set()).add(OWN_RESOURCES)
        if self.topic_fault:
            faults.setdefault(self.topic_fault, set())
        return faults

    def _find_broker_faults(self, broker_id: int) -> Iterator[ProbeFailure]:
        failed = self.connections.latest_failure(broker_id)
        if failed:
            yield ProbeFailure(failed.value.upper(), self.connections.latest_fault(broker_id))
        for leg in Leg if broker_id in self.homes else ():
            tracker = self.trackers.get(BrokerLeg(broker_id, leg))
            if tracker and (failure := tracker.present_fault):
                yield failure

    def _find_timeout_evidence(self, broker_id: int) -> TimeoutEvidence:
        return TimeoutEvidence(
            connection_failure=self.connections.latest_failure(broker_id),
            connection_fault=self.connections.latest_fault(broker_id),
            is_login_refused=self.logins.is_invalid or broker_id in self.logins.refused,
            is_login_invalid=self.logins.is_invalid,
        )

    # The probe topic ----------------------------------------------------------------

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
        self._brokers_by_home = {partition: broker for broker, partition in self.homes.items()}
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
            self.trackers[BrokerLeg(broker_id, leg)] = ProbeTracker(
                leg, broker_id, self._pauses, self.throttles
            )
            phase_ns = compute_phase_ns(position, len(self.registered), leg)
            self.schedule.add_leg(broker_id, leg, phase_ns, now_ns)
        _log.info("%s: probing broker %d", self.cluster.id, broker_id)
