"""A cluster to act upon, as Kafka behaves: an order changes no leader, an election none that cannot lead."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import BrokerRegistration, ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import MitigationCase, ReplicaOrder
from fleetgauge_operations.mitigation.executor import RestartCommandError
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, ClusterSnapshot

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(hours=1)


def broker(broker_id: int, zone: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(broker_id, "localhost", 9092, zone or f"zone-{broker_id}", fenced)


def partition(*replicas: int, leader: int | None = None, out: Iterable[int] = ()) -> PartitionMetadata:
    """Led by the first unless it is said otherwise."""
    return PartitionMetadata(leader or replicas[0], replicas, frozenset(replicas) - set(out))


def cluster_metadata(
    brokers: Iterable[BrokerRegistration] = (broker(1), broker(2), broker(3)),
    partitions: Mapping[TopicPartition, PartitionMetadata] | None = None,
    reassigning: Iterable[TopicPartition] = (),
) -> ClusterMetadata:
    """Three brokers with a topic of three, min.insync.replicas 2."""
    if partitions is None:
        partitions = {
            TopicPartition("t", 0): partition(1, 2, 3),
            TopicPartition("t", 1): partition(2, 3, 1),
            TopicPartition("t", 2): partition(3, 1, 2),
        }
    topics = {place.topic for place in partitions}
    return ClusterMetadata(
        {one.broker_id: one for one in brokers}, partitions, dict.fromkeys(topics, 2), frozenset(reassigning)
    )


def degraded(broker_id: int, since: datetime = LONG_AGO) -> ActiveAlert:
    return ActiveAlert(broker_id, HealthState.DEGRADED, since)


class BrokenError(BaseException):
    """A fail-safe is: nothing that acts may take this for a fault of Kafka's, and go on."""


@dataclass
class SimulatedCluster:
    """One cluster; ``said`` keeps what was asked of it. Where it is ``deaf`` elections come to nothing."""

    metadata: ClusterMetadata = field(default_factory=cluster_metadata)
    alerts: tuple[ActiveAlert, ...] = ()
    now: datetime = NOON
    cases: dict[str, MitigationCase] = field(default_factory=dict)
    healthy_since: dict[int, datetime] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    deaf: bool = False
    back: bool = True
    """Whether a broker that is slowed no more catches up."""
    stuck: bool = False
    """Where a restart fails."""
    idle: frozenset[TopicPartition] = frozenset()
    """To which nobody writes."""
    marked: set[int] = field(default_factory=set)
    """Whose probe partitions agents leave alone."""
    said: list[str] = field(default_factory=list)

    def observe(self, excluded_case_id: str) -> ClusterSnapshot:
        others = tuple(case for case in self.cases.values() if case.case_id != excluded_case_id)
        return ClusterSnapshot(
            self.metadata, self.alerts, others, self.healthy_since, self.modes, has_restart_command=True
        )

    def clock(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def add_case(self, case: MitigationCase) -> None:
        assert case.case_id not in self.cases
        self.cases[case.case_id] = case

    def update_case(self, case: MitigationCase) -> None:
        assert case.case_id in self.cases
        self.cases[case.case_id] = case

    def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
        (self.marked.add if demoted else self.marked.discard)(broker_id)

    def reorder_replicas(
        self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, ReplicaOrder]
    ) -> None:
        if self.metadata.reassigning:
            raise KafkaUnavailableError("a reassignment is under way")
        if any(self.metadata.partitions[place].replicas not in known[place] for place in orders):
            raise KafkaUnavailableError("another order since")
        self.said.append(f"reorder {len(orders)}")
        for place, replicas in orders.items():
            if set(replicas) != set(self.metadata.partitions[place].replicas):
                raise BrokenError("data would move")
            self.change(place, replicas=tuple(replicas))

    def elect_preferred_leaders(self, places: Iterable[TopicPartition]) -> None:
        wanted = list(places)
        self.said.append(f"elect {len(wanted)}")
        for place in [] if self.deaf else wanted:
            one = self.metadata.partitions[place]
            first = one.replicas[0]
            if first in one.in_sync and not self.metadata.brokers[first].fenced:
                self.change(place, leader=first)

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        self.said.append(f"throttle {sorted(replicas)}")
        self.metadata = replace(
            self.metadata, throttled_topics=self.metadata.throttled_topics | set(replicas)
        )

    def remove_throttle(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> None:
        self.said.append("release")
        assert registered is (broker_id in self.metadata.brokers)
        self.metadata = replace(
            self.metadata, throttled_topics=self.metadata.throttled_topics - set(replicas)
        )
        for place, one in self.metadata.replicated_on(broker_id).items() if self.back else ():
            self.change(place, in_sync=one.in_sync | {broker_id})

    def restart_broker(self, broker_id: int) -> None:
        """It is back at once, and in sync where nothing comes in or nothing slows it."""
        if self.stuck:
            raise RestartCommandError("systemctl ended with 1")
        self.said.append("restart")
        up = replace(self.metadata.brokers[broker_id], fenced=False)
        self.metadata = replace(self.metadata, brokers={**self.metadata.brokers, broker_id: up})
        for place, one in self.metadata.replicated_on(broker_id).items():
            others = [other for other in one.replicas if other in one.in_sync and other != broker_id]
            behind = place.topic in self.metadata.throttled_topics and place not in self.idle
            in_sync = one.in_sync - {broker_id} if behind else one.in_sync
            self.change(place, in_sync=in_sync, leader=others[0] if one.leader == broker_id else one.leader)

    def change(self, place: TopicPartition, **changes: Any) -> None:
        """Fields of one partition's view."""
        one = self.metadata.partitions[place]
        after = replace(one, **changes)
        self.metadata = replace(self.metadata, partitions={**self.metadata.partitions, place: after})
