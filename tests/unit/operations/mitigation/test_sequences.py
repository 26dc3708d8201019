"""Thousands of random sequences of faults and actions, in which no fail-safe is ever violated.

Whether a change was permitted is judged by rules of this module, on the cluster as it is when the change is
requested.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from itertools import count
from random import Random

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_core.tables import MITIGATION_KINDS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.executor import ActionExecutor, UndoRefusedError
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.control_loop import ControlLoop
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from tests.unit.operations.mitigation.simulated_cluster import (
    FailSafeViolatedError,
    SimulatedCluster,
    build_broker,
    build_metadata,
)

OPERATOR_STEPS = 12
CONTROLLER_ROUNDS = 40
ONE_PER_MINUTE = MitigationLimits(max_led_per_minute=1)
ALERT_STATES = (
    HealthState.DEGRADED,
    HealthState.DEGRADED,
    HealthState.NETWORK_UNAVAILABLE,
    HealthState.BROKER_DOWN,
)
#: The alert states that warrant each action.
WARRANTS = {
    ActionKind.DEMOTE: {HealthState.DEGRADED, HealthState.NETWORK_UNAVAILABLE},
    ActionKind.QUARANTINE_RESTART: {HealthState.DEGRADED},
    ActionKind.RESTART: {HealthState.BROKER_DOWN},
    ActionKind.EVACUATE: set[HealthState](),
}


@dataclass
class RandomFaultCluster(SimulatedCluster):
    """A cluster with random faults, also between a snapshot and a change, that judges every change."""

    random: Random = field(default_factory=Random)
    applied: tuple[str, int] | None = None
    """Case and broker of the action that is being applied."""
    undone_broker_id: int | None = None
    """Broker of the action that is being undone without an operator's reason."""
    action_times: list[datetime] = field(default_factory=list)
    recovery_times: list[datetime] = field(default_factory=list)

    def observe(self, excluded_case_id: str) -> ClusterSnapshot:
        if self.random.random() < 0.1:
            self.cause_event()
        if self.random.random() < 0.02:
            raise KafkaUnavailableError("no answer")
        return super().observe(excluded_case_id)

    def reorder_replicas(
        self,
        orders: Mapping[TopicPartition, Sequence[int]],
        expected: Mapping[TopicPartition, ReplicaOrder],
    ) -> None:
        if self.applied:
            self.judge_action(*self.applied)
            self.action_times.append(self.now)
            for partition in orders:
                if not self.metadata.partitions[partition].in_sync - {self.applied[1]}:
                    raise FailSafeViolatedError("no other replica could lead")
        if self.undone_broker_id:
            self.judge_undo(self.undone_broker_id, orders)
        super().reorder_replicas(orders, expected)

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        if self.applied:
            self.judge_action(*self.applied)
        super().elect_preferred_leaders(partitions)

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        if self.applied:
            self.judge_action(*self.applied)
            self.action_times.append(self.now)
        super().throttle_replication(broker_id, replicas)

    def restart_broker(self, broker_id: int) -> None:
        if self.applied:
            self.judge_action(*self.applied)
            if self.cases[self.applied[0]].kind is ActionKind.RESTART:
                self.action_times.append(self.now)
        super().restart_broker(broker_id)

    def judge_action(self, case_id: str, broker_id: int) -> None:
        """Raise FailSafeViolatedError if the action must not change the cluster as it is now."""
        try:
            self._assert_action_permitted(case_id, broker_id)
        except AssertionError as error:
            raise FailSafeViolatedError(case_id) from error

    def judge_undo(self, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Raise FailSafeViolatedError if these orders must not be restored now."""
        try:
            self._assert_undo_permitted(broker_id, orders)
        except AssertionError as error:
            raise FailSafeViolatedError(broker_id) from error

    def _assert_action_permitted(self, case_id: str, broker_id: int) -> None:
        brokers, partitions = self.metadata.brokers, self.metadata.partitions
        action = self.cases[case_id].kind
        assert not any(broker.fenced for broker in brokers.values() if broker.broker_id != broker_id)
        is_fenced = brokers[broker_id].fenced
        assert action is ActionKind.RESTART or not is_fenced
        assert {alert.broker_id for alert in self.alerts} == {broker_id}
        assert any(alert.state in WARRANTS[action] for alert in self.alerts)
        is_gone = is_fenced or any(alert.state is HealthState.BROKER_DOWN for alert in self.alerts)
        for moving in self.metadata.reassigning:
            waits_for_it = is_gone and broker_id in partitions[moving].replicas
            assert action is ActionKind.RESTART
            assert waits_for_it
        for partition in partitions.values():
            # A demoted broker stays in sync.
            if broker_id in partition.replicas and not is_fenced and action is not ActionKind.DEMOTE:
                assert len(partition.in_sync - {broker_id}) >= 2
        open_cases = [case for case in self.cases.values() if case.is_open and case.case_id != case_id]
        # A demoted broker may be quarantined as well.
        assert all(
            case.broker_id == broker_id and case.outcome is not ActionOutcome.FAILED for case in open_cases
        )
        assert action not in {case.kind for case in open_cases}
        earlier_times = [at for at in self.action_times if at < self.cases[case_id].began]
        assert all(self.now - at >= timedelta(minutes=10) for at in earlier_times)
        assert sum(self.now - at < timedelta(days=1) for at in earlier_times) < 3

    def _assert_undo_permitted(self, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]) -> None:
        to_lead = [partition for partition, replicas in orders.items() if replicas[0] == broker_id]
        assert len(to_lead) <= ONE_PER_MINUTE.max_led_per_minute
        assert broker_id not in {alert.broker_id for alert in self.alerts}
        assert not self.metadata.brokers[broker_id].fenced
        assert not self.metadata.reassigning
        for partition in self.metadata.replicated_on(broker_id).values() if to_lead else ():
            assert broker_id in partition.in_sync

    def cause_event(self) -> None:
        """Cause a random fault, or a recovery from all of them."""
        event = self.random.choice(
            [
                self.recover,
                self.recover,
                self.open_alert,
                self.fence_broker,
                self.remove_from_isr,
                self.start_reassignment,
                self.reorder_by_operator,
            ]
        )
        event()

    def recover(self) -> None:
        self.healthy_since |= {
            alert.broker_id: self.now for alert in self.alerts if alert.broker_id is not None
        }
        self.alerts = ()
        self.recovery_times.append(self.now)
        partitions = {
            partition: replace(metadata, in_sync=frozenset(metadata.replicas))
            for partition, metadata in self.metadata.partitions.items()
        }
        brokers = {
            broker_id: replace(broker, fenced=False) for broker_id, broker in self.metadata.brokers.items()
        }
        self.metadata = replace(
            self.metadata, brokers=brokers, partitions=partitions, reassigning=frozenset()
        )

    def open_alert(self) -> None:
        since = self.now - timedelta(seconds=self.random.choice([0, 40, 600]))
        alert = ActiveAlert(self.choose_broker(), self.random.choice(ALERT_STATES), since)
        self.alerts = (*self.alerts, alert)
        alerting_broker_ids = {alert.broker_id for alert in self.alerts}
        self.healthy_since = {
            broker_id: at
            for broker_id, at in self.healthy_since.items()
            if broker_id not in alerting_broker_ids
        }

    def fence_broker(self) -> None:
        self.update_broker(self.choose_broker(), fenced=True)

    def remove_from_isr(self) -> None:
        partition = self.choose_partition()
        metadata = self.metadata.partitions[partition]
        follower = self.random.choice(
            [replica for replica in metadata.replicas if replica != metadata.leader]
        )
        self.update_partition(partition, in_sync=metadata.in_sync - {follower})

    def start_reassignment(self) -> None:
        self.metadata = replace(self.metadata, reassigning=frozenset({self.choose_partition()}))

    def reorder_by_operator(self) -> None:
        partition = self.choose_partition()
        replicas = list(self.metadata.partitions[partition].replicas)
        self.random.shuffle(replicas)
        self.update_partition(partition, replicas=tuple(replicas))

    def choose_broker(self) -> int:
        return self.random.choice(sorted(self.metadata.brokers))

    def choose_partition(self) -> TopicPartition:
        return self.random.choice(sorted(self.metadata.partitions))

    @contextmanager
    def open_executor(self) -> Iterator[ActionExecutor]:
        """Yield an executor whose process may lose the leadership at any time."""
        executor = self.create_executor(is_leader=lambda: self.random.random() > 0.05, limits=ONE_PER_MINUTE)
        yield JudgedExecutor(*(getattr(executor, slot.name) for slot in fields(executor)))


class JudgedExecutor(ActionExecutor):
    """Tells the cluster, which stores its cases, what is being applied or undone, and checks the result."""

    def apply(
        self, request: ActionRequest, case_id: str, author: str, reason: str, *, must_notify: bool = False
    ) -> ActionCase:
        cluster = self.case_writer
        assert isinstance(cluster, RandomFaultCluster)
        cluster.applied = (case_id, request.broker_id)
        try:
            case = super().apply(request, case_id, author, reason, must_notify=must_notify)
        except KafkaUnavailableError:
            assert case_id not in cluster.cases
            raise
        finally:
            cluster.applied = None
        if case.outcome is ActionOutcome.REFUSED:
            assert case.explanations
            assert cluster.now not in cluster.action_times
        return case

    def undo(self, case: ActionCase, reason: str | None) -> ActionCase:
        cluster = self.case_writer
        assert isinstance(cluster, RandomFaultCluster)
        cluster.undone_broker_id = case.broker_id
        try:
            closed = super().undo(case, reason)
        except (KafkaUnavailableError, UndoRefusedError):
            assert cluster.cases[case.case_id] == case
            raise
        finally:
            cluster.undone_broker_id = None
        if closed.outcome is ActionOutcome.UNDONE:
            assert closed.ended
        else:
            assert closed.outcome is ActionOutcome.FAILED
        return closed


def create_random_metadata(random: Random) -> ClusterMetadata:
    """Return three to five brokers and one to six partitions with three replicas each."""
    broker_ids = range(1, random.randint(3, 5) + 1)
    partitions: dict[TopicPartition, PartitionMetadata] = {}
    for number in range(random.randint(1, 6)):
        replicas = tuple(random.sample(broker_ids, 3))
        partitions[TopicPartition("t", number)] = PartitionMetadata(
            replicas[0], replicas, frozenset(replicas)
        )
    return build_metadata(map(build_broker, broker_ids), partitions)


def run_operator_sequence(seed: int) -> tuple[ActionCase, ...]:
    """Return the cases after hours in which an operator tries to act or to undo all the time."""
    random = Random(seed)
    cluster = RandomFaultCluster(create_random_metadata(random), random=random)
    for step in range(OPERATOR_STEPS):
        cluster.now += timedelta(minutes=random.choice([1, 5, 11, 11, 60, 60 * 9]))
        if random.random() < 0.6:
            cluster.cause_event()
        if random.random() < 0.5 and cluster.alerts:
            apply_random_action(cluster, str(step))
        else:
            undo_open_case(cluster)
    return tuple(cluster.cases.values())


def apply_random_action(cluster: RandomFaultCluster, case_id: str) -> None:
    """Apply an action to the broker of the first alert; mostly an action that the alert warrants."""
    alert = cluster.alerts[0]
    assert alert.broker_id is not None
    warranted = [action for action in MITIGATION_KINDS if alert.state in WARRANTS[action]]
    action = cluster.random.choice(warranted if cluster.random.random() < 0.8 else list(MITIGATION_KINDS))
    request = ActionRequest(action, "orders", alert.broker_id)
    with cluster.open_executor() as executor, suppress(KafkaUnavailableError):
        executor.apply(request, case_id, "ann", "DEGRADED")


def undo_open_case(cluster: RandomFaultCluster) -> None:
    case = next((case for case in cluster.cases.values() if case.is_open), None)
    if case:
        with cluster.open_executor() as executor, suppress(KafkaUnavailableError, UndoRefusedError):
            executor.undo(case, None)


def test_operators_violate_no_fail_safe_whatever_happens() -> None:
    outcomes = [case.outcome for seed in range(10_000) for case in run_operator_sequence(seed)]
    # If an outcome were rare, the sequences would prove nothing about it.
    for outcome in (ActionOutcome.REFUSED, ActionOutcome.DONE, ActionOutcome.FAILED, ActionOutcome.UNDONE):
        assert outcomes.count(outcome) > 100, outcome


def run_controller_sequence(seed: int) -> RandomFaultCluster:
    """Return the cluster after a day in which only the controller acts, every few minutes."""
    random = Random(seed)
    cluster = RandomFaultCluster(create_random_metadata(random), random=random)
    cluster.modes = {
        action: random.choice(["act", "act", "advise"]) for action in MITIGATION_KINDS if action != "evacuate"
    }
    case_ids = count()
    control_loop = ControlLoop(cluster, cluster.clock, lambda: str(next(case_ids)), ONE_PER_MINUTE)
    for _ in range(CONTROLLER_ROUNDS):
        cluster.now += timedelta(minutes=random.choice([1, 3, 11, 60]))
        if random.random() < 0.3:
            cluster.cause_event()
        # No case may be left that was begun and not closed.
        assert all(case.outcome is not ActionOutcome.BEGUN for case in cluster.cases.values())
        with suppress(KafkaUnavailableError):
            control_loop.take_next_step([])
    return cluster


def test_the_controller_violates_no_fail_safe_and_repeats_no_notification_before_a_recovery() -> None:
    outcomes: list[ActionOutcome] = []
    for seed in range(2_000):
        cluster = run_controller_sequence(seed)
        latest_notified: dict[tuple[int, ActionKind], ActionCase] = {}
        for case in cluster.cases.values():
            outcomes.append(case.outcome)
            if case.has_changed_cluster:
                continue
            previous = latest_notified.get((case.broker_id, case.kind))
            if previous and previous.refused_by == case.refused_by:
                assert any(previous.began <= at <= case.began for at in cluster.recovery_times)
            latest_notified[case.broker_id, case.kind] = case
    for outcome in ActionOutcome:
        assert outcomes.count(outcome) > 20 or outcome is ActionOutcome.BEGUN, outcome


@pytest.mark.parametrize("seed", range(0, 10_000, 97))
def test_a_sequence_with_the_same_seed_has_the_same_cases(seed: int) -> None:
    assert run_operator_sequence(seed) == run_operator_sequence(seed)
