"""A cluster in memory, on which actions are executed.

It behaves as Kafka does: a reassignment to another order of replicas changes no leader, and an election only
elects a replica that is in sync and not fenced.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_core.detection import Finding, HealthState
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import BrokerRegistration, ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.actions.executor import ActionExecutor
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS, MitigationLimits
from fleetgauge_operations.mitigation.plan.rules import build_rules
from fleetgauge_operations.mitigation.steps import RestartCommandError, build_steps

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR_AGO = NOON - timedelta(hours=1)


def build_broker(broker_id: int, zone: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(broker_id, "localhost", 9092, zone or f"zone-{broker_id}", fenced)


def build_partition(
    *replicas: int, leader: int | None = None, out_of_sync: Iterable[int] = ()
) -> PartitionMetadata:
    """Return a partition that is led by its first replica unless another leader is given."""
    return PartitionMetadata(leader or replicas[0], replicas, frozenset(replicas) - set(out_of_sync))


def build_metadata(
    brokers: Iterable[BrokerRegistration] = (build_broker(1), build_broker(2), build_broker(3)),
    partitions: Mapping[TopicPartition, PartitionMetadata] | None = None,
    reassigning: Iterable[TopicPartition] = (),
) -> ClusterMetadata:
    """Return by default three brokers, and a topic of three partitions; min.insync.replicas is 2."""
    if partitions is None:
        partitions = {
            TopicPartition("t", 0): build_partition(1, 2, 3),
            TopicPartition("t", 1): build_partition(2, 3, 1),
            TopicPartition("t", 2): build_partition(3, 1, 2),
        }
    topics = {partition.topic for partition in partitions}
    return ClusterMetadata(
        {broker.broker_id: broker for broker in brokers},
        partitions,
        dict.fromkeys(topics, 2),
        frozenset(reassigning),
    )


def degraded_alert(broker_id: int, since: datetime = HOUR_AGO) -> ActiveAlert:
    return ActiveAlert(broker_id, HealthState.DEGRADED, since)


class FailSafeViolatedError(BaseException):
    """An action that a fail-safe should have refused.

    It is no Exception, so that the executor does not handle it as a failed request.
    """


@dataclass
class SimulatedCluster:
    """A cluster with its alerts and cases, which records the changes that are requested of it."""

    metadata: ClusterMetadata = field(default_factory=build_metadata)
    alerts: tuple[ActiveAlert, ...] = ()
    now: datetime = NOON
    cases: dict[str, ActionCase] = field(default_factory=dict)
    healthy_since: dict[int, datetime] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    ignores_elections: bool = False
    """Whether elections change no leader."""
    catches_up: bool = True
    """Whether a broker is in sync as soon as its throttle is removed."""
    is_silent: bool = False
    """Whether a broker does not tell its settings."""
    restart_fails: bool = False
    """Whether the restart command fails."""
    idle_partitions: frozenset[TopicPartition] = frozenset()
    """Partitions to which nothing is produced, so that no replica falls behind."""
    demotion_marks: set[int] = field(default_factory=set)
    """IDs of the brokers whose probe partitions agents leave to other leaders."""
    is_led_by_another_process: bool = False
    waited_s: float = 0
    """How long the executor has waited."""
    clock_step: timedelta = timedelta(0)
    """By how much the wall clock is set during the first wait."""
    requests: list[str] = field(default_factory=list)
    """The requested changes in order, such as ``reorder 2`` for two partitions."""

    def observe(self, excluded_case_id: str) -> ClusterSnapshot:
        cases = tuple(case for case in self.cases.values() if case.case_id != excluded_case_id)
        return ClusterSnapshot(
            self.metadata, self.alerts, cases, self.healthy_since, self.modes, has_restart_command=True
        )

    @property
    def cluster_id(self) -> str:
        return "orders"

    def read_snapshot(self, _: Sequence[Finding]) -> ClusterSnapshot:
        """Return a snapshot with the alerts of this cluster, whatever the findings are."""
        return self.observe("")

    @contextmanager
    def open_executor(self) -> Iterator[ActionExecutor]:
        if self.is_led_by_another_process:
            raise LeadershipTakenError("another process is leader of the consumer group")
        yield self.create_executor()

    def create_executor(
        self,
        observe: Callable[[str], ClusterSnapshot] | None = None,
        is_leader: Callable[[], bool] = lambda: True,
        limits: MitigationLimits = DEFAULT_LIMITS,
    ) -> ActionExecutor:
        """Return an executor that acts on this cluster, and stores its cases here."""
        observe = observe or self.observe
        return ActionExecutor(
            observe,
            lambda: observe("").metadata,
            build_rules(limits),
            build_steps(self, limits),
            self,
            is_leader,
            self.clock,
            lambda: self.waited_s,
            self.wait,
        )

    def clock(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds) + self.clock_step
        self.waited_s += seconds
        self.clock_step = timedelta(0)

    def add_case(self, case: ActionCase) -> None:
        assert case.case_id not in self.cases
        self.cases[case.case_id] = case

    def update_case(self, case: ActionCase) -> None:
        assert case.case_id in self.cases
        self.cases[case.case_id] = case

    def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
        (self.demotion_marks.add if demoted else self.demotion_marks.discard)(broker_id)

    def reorder_replicas(
        self,
        orders: Mapping[TopicPartition, Sequence[int]],
        expected: Mapping[TopicPartition, ReplicaOrder],
    ) -> None:
        if self.metadata.reassigning:
            raise KafkaUnavailableError("a reassignment is in progress")
        if any(
            self.metadata.partitions[partition].replicas not in expected[partition] for partition in orders
        ):
            raise KafkaUnavailableError("the order of replicas was changed in the meantime")
        self.requests.append(f"reorder {len(orders)}")
        for partition, replicas in orders.items():
            if set(replicas) != set(self.metadata.partitions[partition].replicas):
                raise FailSafeViolatedError("data would be moved")
            self.update_partition(partition, replicas=tuple(replicas))

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        to_elect = list(partitions)
        self.requests.append(f"elect {len(to_elect)}")
        for partition in [] if self.ignores_elections else to_elect:
            metadata = self.metadata.partitions[partition]
            preferred_leader = metadata.replicas[0]
            if preferred_leader in metadata.in_sync and not self.metadata.brokers[preferred_leader].fenced:
                self.update_partition(partition, leader=preferred_leader)

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        self.requests.append(f"throttle {sorted(replicas)}")
        self.metadata = replace(
            self.metadata, throttled_topics=self.metadata.throttled_topics | set(replicas)
        )

    def remove_throttle(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> bool:
        self.requests.append("remove throttle")
        assert registered is (broker_id in self.metadata.brokers)
        self.metadata = replace(
            self.metadata, throttled_topics=self.metadata.throttled_topics - set(replicas)
        )
        if self.is_silent:
            return False
        for partition, metadata in self.metadata.replicated_on(broker_id).items() if self.catches_up else ():
            self.update_partition(partition, in_sync=metadata.in_sync | {broker_id})
        return True

    def restart_broker(self, broker_id: int) -> None:
        """Restart a broker at once; it is out of sync in throttled partitions to which is produced."""
        if self.restart_fails:
            raise RestartCommandError("systemctl exited with 1")
        self.requests.append("restart")
        self.update_broker(broker_id, fenced=False)
        for partition, metadata in self.metadata.replicated_on(broker_id).items():
            candidates = [
                replica
                for replica in metadata.replicas
                if replica in metadata.in_sync and replica != broker_id
            ]
            is_throttled = partition.topic in self.metadata.throttled_topics
            is_behind = is_throttled and partition not in self.idle_partitions
            self.update_partition(
                partition,
                in_sync=metadata.in_sync - {broker_id} if is_behind else metadata.in_sync,
                leader=candidates[0] if metadata.leader == broker_id else metadata.leader,
            )

    def update_broker(self, broker_id: int, *, fenced: bool) -> None:
        broker = replace(self.metadata.brokers[broker_id], fenced=fenced)
        self.metadata = replace(self.metadata, brokers={**self.metadata.brokers, broker_id: broker})

    def update_partition(self, partition: TopicPartition, **changes: Any) -> None:
        """Replace fields of a partition's metadata."""
        metadata = replace(self.metadata.partitions[partition], **changes)
        self.metadata = replace(self.metadata, partitions={**self.metadata.partitions, partition: metadata})
