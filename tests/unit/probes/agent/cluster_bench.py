"""One cluster's state with a clock and Kafka clients that a test controls."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import (
    ConnectionFailure,
    ConnectionMeasurement,
    ConsumerRecord,
    EndpointResponse,
    TopicMetadata,
)
from fleetgauge_core.metadata import BrokerRegistration, PartitionMetadata
from fleetgauge_probes.agent import probe_sender
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.cluster_state import BrokerLeg, ClusterState
from fleetgauge_probes.agent.cold_connections import AttemptTime
from fleetgauge_probes.agent.minute import AgentIdentity
from fleetgauge_probes.agent.payload import ProbeKey, decode_payload
from fleetgauge_probes.agent.probe_sender import ProbeSender
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.schedule import MINUTE_NS, MinuteClock

SECOND_NS = 1_000_000_000
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PROBE_ID = UUID(int=7)
AGENT = AgentIdentity("host/zone-a", "1.2.3", "run", "zone-a")

DeliveryCallback = Callable[[int, str | None], None]


@dataclass
class SentProbe:
    """A message handed to a producer, and the callback for its delivery report."""

    acks: str
    partition: int
    key: ProbeKey
    report: DeliveryCallback


class FakeProducer:
    """Records what is sent instead of producing it."""

    sent: list[SentProbe]

    def __init__(self, *arguments: object) -> None:
        self._acks = str(arguments[2])
        self.is_started = False

    def start(self) -> None:
        self.is_started = True

    def stop(self) -> None:
        self.is_started = False

    def send(self, partition: int, payload: bytes, report: DeliveryCallback) -> None:
        key = decode_payload(PROBE_ID, payload)
        assert key is not None
        self.sent.append(SentProbe(self._acks, partition, key, report))


@dataclass
class FakeReader:
    """Returns no messages and records the partitions that it is to read."""

    partitions: list[int] = field(default_factory=list)

    def assign(self, partitions: Iterable[int]) -> None:
        self.partitions += partitions

    def check(self, *_: object) -> None:
        pass

    def poll(self, _timeout_s: float) -> ConsumerRecord | None:
        return None


class ClusterBench:
    """Brokers 1 to 3 with a partition each; the uptime is set by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **cluster: object) -> None:
        self.now_ns = MINUTE_NS
        self.sent: list[SentProbe] = []
        monkeypatch.setattr(FakeProducer, "sent", self.sent, raising=False)
        monkeypatch.setattr(probe_sender, "ProbeProducer", FakeProducer)
        self.cluster = Cluster.model_validate({"id": "orders", "bootstrap": "kafka:9092"} | cluster)
        self.clock = MinuteClock(MINUTE_NS, NOON)
        self.pauses = ProcessPauses(SECOND_NS // 10, self.now_ns)
        self.state = ClusterState(self.cluster, self.clock, self.pauses)
        self.state.registered = {
            broker_id: BrokerRegistration(
                broker_id, f"kafka-{broker_id}", 9092, f"z{broker_id}", fenced=False
            )
            for broker_id in (1, 2, 3)
        }
        self.sender = ProbeSender(
            self.cluster.access, PROBE_ID, self.state, self.clock, itertools.count(), self.read_uptime_ns
        )

    def read_uptime_ns(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass, during which the process runs."""
        for _ in range(round(seconds * 20)):
            self.now_ns += SECOND_NS // 20
            self.pauses.record_heartbeat(self.now_ns)

    def respond(self, *broker_ids: int) -> None:
        """Let brokers respond to a cold connection now."""
        for broker_id in broker_ids:
            broker = self.state.registered[broker_id]
            measurement = ConnectionMeasurement(self.now_ns, None, 100, None, 900, EndpointResponse((4, 3)))
            self.state.record_connection(broker, measurement, self.attempt_time())

    def fail_connection(self, broker_id: int, failure: ConnectionFailure) -> None:
        """Let a cold connection to a broker fail now."""
        self.state.record_connection(self.state.registered[broker_id], failure, self.attempt_time())

    def attempt_time(self) -> AttemptTime:
        """Return the present time, by clocks that agree."""
        now = self.clock.wall_time(self.now_ns)
        return AttemptTime(self.now_ns, now, now)

    def topic(self, topic_id: str = "first", partitions: int = 3) -> TopicMetadata:
        """Return the probe topic: partition p is the home of broker p + 1, in sync on all brokers."""
        replicas = ((1, 2, 3), (2, 3, 1), (3, 1, 2))[:partitions]
        return TopicMetadata(
            topic_id,
            {
                number: PartitionMetadata(brokers[0], brokers, frozenset(brokers))
                for number, brokers in enumerate(replicas)
            },
        )

    def create_probe(self) -> ClusterProbe:
        """Return the probe of the cluster, which is not started; no broker is demoted."""
        return ClusterProbe(
            self.cluster,
            AGENT,
            PROBE_ID,
            self.clock,
            self.pauses,
            itertools.count(),
            dict,
            lambda _: None,
            self.read_uptime_ns,
        )

    def start_probing(self) -> None:
        """Adopt the topic and let the warm-up of every broker time out."""
        self.state.adopt_topic(self.topic(), frozenset(), self.now_ns)
        self.advance(10.1)
        self.state.adopt_topic(self.topic(), frozenset(), self.now_ns)

    def send_for(self, seconds: float) -> list[SentProbe]:
        """Send what is due during so many seconds and return it."""
        before = len(self.sent)
        for _ in range(round(seconds * 20)):
            self.advance(0.05)
            while (
                self.state.schedule.next_due_ns is not None and self.state.schedule.next_due_ns <= self.now_ns
            ):
                self.sender.send_due()
        return self.sent[before:]

    def legs(self) -> tuple[BrokerLeg, ...]:
        return tuple(self.state.trackers)


ACKS_BY_LEG = {Leg.CLIENT: "all", Leg.LEADER: "1"}
