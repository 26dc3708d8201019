"""Sending of probes when they are due, and recording of their deliveries."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple
from uuid import UUID

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import LeaderAndEpoch, ProbeProducer
from fleetgauge_probes.agent.cluster_state import BrokerLeg, ClusterState
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.payload import ProbeKey, encode_payload
from fleetgauge_probes.agent.schedule import MinuteClock
from fleetgauge_probes.agent.topic_plan import TOPIC

_SECOND_NS = 1_000_000_000
#: The longest sleep, so that neither a stop nor the first slot of a new broker is overslept.
_MAX_SLEEP_NS = _SECOND_NS // 5


class _DueProbe(NamedTuple):
    broker_leg: BrokerLeg
    sequence: int
    partition: int


class ProbeSender:
    """Sends the probes of one cluster from a producer for each leg.

    The client leg is produced with acks=all, the leader leg with acks=1.
    """

    def __init__(
        self,
        access: ClusterAccess,
        probe_id: UUID,
        state: ClusterState,
        clock: MinuteClock,
        record_sequences: Iterator[int],
        uptime_ns: Callable[[], int],
    ) -> None:
        """Prepare the sender; ``record_sequences`` numbers the records of the agent's run."""
        self._probe_id = probe_id
        self._state = state
        self._clock = clock
        self._record_sequences = record_sequences
        self._uptime_ns = uptime_ns
        self._probe_sequences: dict[BrokerLeg, int] = {}
        throttled = {leg: partial(self.record_throttling, leg) for leg in Leg}
        self._producers = {
            Leg.CLIENT: ProbeProducer(access, TOPIC, "all", throttled[Leg.CLIENT]),
            Leg.LEADER: ProbeProducer(access, TOPIC, "1", throttled[Leg.LEADER], self.record_routes),
        }

    def start(self) -> None:
        """Start the producers. Raises: KafkaUnavailableError when secrets cannot be read."""
        for producer in self._producers.values():
            producer.start()

    def renew(self) -> None:
        """Renew the producers, because the topic was recreated; probes in flight are not counted."""
        for producer in self._producers.values():
            producer.renew()

    def stop(self) -> None:
        """Stop the producers; probes in flight are abandoned."""
        for producer in self._producers.values():
            producer.stop()

    def run(self, stopping: threading.Event) -> None:
        """Send every probe when it is due, until ``stopping`` is set."""
        while not stopping.is_set():
            with self._state.lock:
                next_due_ns = self._state.schedule.next_due_ns
            wait_ns = _MAX_SLEEP_NS if next_due_ns is None else next_due_ns - self._uptime_ns()
            if wait_ns > 0:
                # This runs a thousand times a second, and waiting for the event takes four times the CPU.
                time.sleep(min(wait_ns, _MAX_SLEEP_NS) / _SECOND_NS)
            else:
                self.send_due()

    def send_warm_up(self, broker_id: int, partition: int) -> None:
        """Send a message on each leg that opens connections and is not counted."""
        payload = encode_payload(self._probe_id, ProbeKey(broker_id, None, 0))
        for leg, producer in self._producers.items():
            producer.send(partition, payload, partial(self._record_warm_up_delivery, broker_id, leg))

    def send_due(self) -> None:
        """Send the probe of the earliest slot that is due, if there is one."""
        with self._state.lock:
            probe = self._prepare_due_probe(self._uptime_ns())
        if probe is None:
            return
        broker_leg, sequence, partition = probe
        payload = encode_payload(self._probe_id, ProbeKey(broker_leg.broker_id, broker_leg.leg, sequence))
        on_delivery = partial(self.record_delivery, broker_leg, sequence)
        self._producers[broker_leg.leg].send(partition, payload, on_delivery)

    def _prepare_due_probe(self, now_ns: int) -> _DueProbe | None:
        """Record the earliest due slot; return its probe unless none is to be sent. The lock is held."""
        state = self._state
        slot = state.schedule.pop_due_slot(now_ns)
        # An unregistered broker keeps its slots, as it may be registered again.
        if slot is None or slot.broker_id not in state.homes:
            return None
        broker_leg = BrokerLeg(slot.broker_id, slot.leg)
        minute = self._clock.minute_index(slot.due_ns)
        state.expected_brokers.setdefault(minute, tuple(sorted(state.registered)))
        tracker = state.trackers[broker_leg]
        tracker.open_minute(minute)
        if (broker_leg, minute) not in state.record_sequences:
            state.record_sequences[broker_leg, minute] = next(self._record_sequences)
        if slot.leg is Leg.LEADER:
            eligibility = state.assess_home(slot.broker_id, tracker.leads, now_ns)
        else:
            eligibility = LeaderEligibility.LEADING
        if eligibility is LeaderEligibility.EXCUSED:
            return None
        sequence = self._probe_sequences.get(broker_leg, 0)
        self._probe_sequences[broker_leg] = sequence + 1
        if eligibility is LeaderEligibility.UNHEALTHY:
            tracker.record_unsent_failure(sequence, slot.due_ns, now_ns, minute)
            return None
        tracker.record_send(sequence, slot.due_ns, now_ns, minute)
        return _DueProbe(broker_leg, sequence, state.homes[slot.broker_id])

    def record_delivery(
        self, broker_leg: BrokerLeg, sequence: int, reported_ns: int, code: str | None
    ) -> None:
        """Record a delivery report; ``code`` is the producer's, None for an acknowledgement."""
        state = self._state
        with state.lock:
            if code is None:
                state.record_acceptance(broker_leg, reported_ns)
                failure = None
            else:
                failure = state.explain_failure(broker_leg, code, reported_ns)
            state.trackers[broker_leg].record_delivery(sequence, reported_ns, failure)

    def record_throttling(self, client: Leg | None, broker_id: int, seconds: float) -> None:
        """Record that a broker throttles a leg's producer, or the consumer (None), from now on."""
        with self._state.lock:
            self._state.throttles.record(broker_id, client, self._uptime_ns(), seconds)

    def record_routes(self, at_ns: int, routes: Mapping[int, LeaderAndEpoch]) -> None:
        """Record where the leader leg's producer sends each partition; called every second by its thread."""
        state = self._state
        with state.lock:
            for (broker_id, leg), tracker in state.trackers.items():
                route = routes.get(state.homes.get(broker_id, -1))
                if route is None:
                    continue
                leads = leg is Leg.CLIENT or route.leader == broker_id
                eligibility = state.assess_home(broker_id, leads, at_ns)
                tracker.record_routing(at_ns, route.leader, eligibility, route.epoch)

    def _record_warm_up_delivery(self, broker_id: int, leg: Leg, _: int, failure: str | None) -> None:
        with self._state.lock:
            if failure is None and broker_id in self._state.warm_ups:
                self._state.warm_ups[broker_id].acknowledged.add(leg)
