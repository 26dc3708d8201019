"""Thousands of stories of faults, with somebody who wants to act all the time: no fail-safe is ever broken.

What may be done is judged here by rules of its own, on the cluster as it is when it is changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import (
    Action,
    ActionRequest,
    CaseOutcome,
    MitigationCase,
    ReplicaOrder,
)
from fleetgauge_operations.mitigation.executor import ActionExecutor, UndoRefusedError
from fleetgauge_operations.mitigation.limits import Limits
from fleetgauge_operations.mitigation.policy import (
    AUTHOR,
    ApplyAction,
    FailCase,
    MitigationPolicy,
    NotifyOperator,
    ResolveCase,
    UndoAction,
)
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, ClusterSnapshot
from tests.unit.operations.mitigation.simulated_cluster import (
    BrokenError,
    SimulatedCluster,
    broker,
    cluster_metadata,
)

STEPS = 12
ONE_A_MINUTE = Limits(max_led_per_minute=1)
PHASES = (
    HealthState.DEGRADED,
    HealthState.DEGRADED,
    HealthState.NETWORK_UNAVAILABLE,
    HealthState.BROKER_DOWN,
)
HELPS = {
    Action.DEMOTE: {HealthState.DEGRADED, HealthState.NETWORK_UNAVAILABLE},
    Action.QUARANTINE_RESTART: {HealthState.DEGRADED},
    Action.RESTART: {HealthState.BROKER_DOWN},
    Action.EVACUATE: set[HealthState](),
}


@dataclass
class Story(SimulatedCluster):
    """A cluster in which things happen, also between a look and a change, and which judges every demotion."""

    chance: Random = field(default_factory=Random)
    treating: tuple[str, int] | None = None
    undoing: int | None = None
    """The broker that something is given back to, by nobody in person."""
    acted_at: list[datetime] = field(default_factory=list)
    well_at: list[datetime] = field(default_factory=list)

    def observe(self, excluded_case_id: str) -> ClusterSnapshot:
        if self.chance.random() < 0.1:
            self.something_happens()
        if self.chance.random() < 0.02:
            raise KafkaUnavailableError("no answer")
        return super().observe(excluded_case_id)

    def reorder_replicas(
        self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, ReplicaOrder]
    ) -> None:
        if self.treating:
            self.judge(*self.treating)
            self.acted_at.append(self.now)
        if self.undoing:
            self.judge_giving_back(self.undoing, orders)
        super().reorder_replicas(orders, known)

    def elect_preferred_leaders(self, places: Iterable[TopicPartition]) -> None:
        if self.treating:
            self.judge(*self.treating)
        super().elect_preferred_leaders(places)

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        if self.treating:
            self.judge(*self.treating)
            self.acted_at.append(self.now)
        super().throttle_replication(broker_id, replicas)

    def restart_broker(self, broker_id: int) -> None:
        if self.treating:
            self.judge(*self.treating)
            if self.cases[self.treating[0]].action is Action.RESTART:
                self.acted_at.append(self.now)
        super().restart_broker(broker_id)

    def judge(self, case_id: str, broker_id: int) -> None:
        try:
            self._judge(case_id, broker_id)
        except AssertionError as error:
            raise BrokenError(case_id) from error

    def judge_giving_back(self, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]) -> None:
        try:
            to_lead = [place for place, replicas in orders.items() if replicas[0] == broker_id]
            assert len(to_lead) <= ONE_A_MINUTE.max_led_per_minute
            assert broker_id not in {one.broker_id for one in self.alerts}
            assert not self.metadata.brokers[broker_id].fenced
            assert not self.metadata.reassigning
            for one in self.metadata.replicated_on(broker_id).values() if to_lead else ():
                assert broker_id in one.in_sync
        except AssertionError as error:
            raise BrokenError(broker_id) from error

    def _judge(self, case_id: str, broker_id: int) -> None:
        brokers, partitions = self.metadata.brokers, self.metadata.partitions
        action = self.cases[case_id].action
        assert not any(one.fenced for one in brokers.values() if one.broker_id != broker_id)
        fenced = brokers[broker_id].fenced
        assert action is Action.RESTART or not fenced
        assert {one.broker_id for one in self.alerts} == {broker_id}
        assert any(one.state in HELPS[action] for one in self.alerts)
        assert not self.metadata.reassigning
        for one in partitions.values():
            if broker_id in one.replicas and not fenced:
                assert len(one.in_sync - {broker_id}) >= 2
        others = [one for one in self.cases.values() if one.is_open and one.case_id != case_id]
        # The same broker may be kept out of sync once it leads nothing.
        assert all(one.broker_id == broker_id and one.outcome is not CaseOutcome.FAILED for one in others)
        assert action not in {one.action for one in others}
        earlier = [at for at in self.acted_at if at < self.cases[case_id].began]
        assert all(self.now - at >= timedelta(minutes=10) for at in earlier)
        assert sum(self.now - at < timedelta(days=1) for at in earlier) < 3

    def something_happens(self) -> None:
        well = self.get_well
        self.chance.choice(
            [well, well, self.fall_ill, self.fence, self.fall_behind, self.move, self.reassign]
        )()

    def any_broker(self) -> int:
        return self.chance.choice(sorted(self.metadata.brokers))

    def any_place(self) -> TopicPartition:
        return self.chance.choice(sorted(self.metadata.partitions))

    def fall_ill(self) -> None:
        since = self.now - timedelta(seconds=self.chance.choice([0, 40, 600]))
        self.alerts = (*self.alerts, ActiveAlert(self.any_broker(), self.chance.choice(PHASES), since))
        self.healthy_since = {
            b: at for b, at in self.healthy_since.items() if b not in {one.broker_id for one in self.alerts}
        }

    def get_well(self) -> None:
        self.healthy_since |= {one.broker_id: self.now for one in self.alerts if one.broker_id is not None}
        self.alerts = ()
        self.well_at.append(self.now)
        partitions = {
            place: replace(one, in_sync=frozenset(one.replicas))
            for place, one in self.metadata.partitions.items()
        }
        brokers = {number: replace(one, fenced=False) for number, one in self.metadata.brokers.items()}
        self.metadata = replace(
            self.metadata, brokers=brokers, partitions=partitions, reassigning=frozenset()
        )

    def fence(self) -> None:
        number = self.any_broker()
        one = replace(self.metadata.brokers[number], fenced=True)
        self.metadata = replace(self.metadata, brokers={**self.metadata.brokers, number: one})

    def fall_behind(self) -> None:
        place = self.any_place()
        one = self.metadata.partitions[place]
        out = self.chance.choice([b for b in one.replicas if b != one.leader])
        self.change(place, in_sync=one.in_sync - {out})

    def move(self) -> None:
        self.metadata = replace(self.metadata, reassigning=frozenset({self.any_place()}))

    def reassign(self) -> None:
        """A person changes an order."""
        place = self.any_place()
        replicas = list(self.metadata.partitions[place].replicas)
        self.chance.shuffle(replicas)
        self.change(place, replicas=tuple(replicas))

    def hand(self) -> ActionExecutor:
        return ActionExecutor(
            self.observe, self, self, lambda: self.chance.random() > 0.05, self.clock, self.wait, ONE_A_MINUTE
        )


def a_layout(chance: Random) -> ClusterMetadata:
    brokers = range(1, chance.randint(3, 5) + 1)
    partitions: dict[TopicPartition, PartitionMetadata] = {}
    for number in range(chance.randint(1, 6)):
        replicas = tuple(chance.sample(brokers, 3))
        partitions[TopicPartition("t", number)] = PartitionMetadata(
            replicas[0], replicas, frozenset(replicas)
        )
    return cluster_metadata(map(broker, brokers), partitions)


def told(seed: int) -> tuple[MitigationCase, ...]:
    """The story of that seed: the cases as they ended."""
    chance = Random(seed)
    cluster = Story(a_layout(chance), chance=chance)
    for step in range(STEPS):
        cluster.now += timedelta(minutes=chance.choice([1, 5, 11, 11, 60, 60 * 9]))
        if chance.random() < 0.6:
            cluster.something_happens()
        if chance.random() < 0.5 and cluster.alerts:
            _treat(cluster, str(step))
        else:
            _undo(cluster)
    return tuple(cluster.cases.values())


def _treat(cluster: Story, case_id: str) -> None:
    sick = cluster.alerts[0]
    assert sick.broker_id is not None
    helps = [one for one in Action if sick.state in HELPS[one]]
    action = cluster.chance.choice(helps if cluster.chance.random() < 0.8 else list(Action))
    _carry_out(cluster, ActionRequest(action, "orders", sick.broker_id), case_id, "story")


def _carry_out(cluster: Story, intent: ActionRequest, case_id: str, author: str) -> None:
    cluster.treating = (case_id, intent.broker_id)
    try:
        case = cluster.hand().apply(intent, case_id, author, "sick")
    except KafkaUnavailableError:
        assert case_id not in cluster.cases
        return
    finally:
        cluster.treating = None
    if case.outcome is CaseOutcome.REFUSED:
        assert case.words
        assert cluster.now not in cluster.acted_at


def _undo(cluster: Story) -> None:
    case = next((one for one in cluster.cases.values() if one.is_open), None)
    if case:
        _take_back(cluster, case)


def _take_back(cluster: Story, case: MitigationCase) -> None:
    cluster.undoing = case.broker_id
    try:
        after = cluster.hand().undo(case, None)
    except (KafkaUnavailableError, UndoRefusedError):
        assert cluster.cases[case.case_id] == case
        return
    finally:
        cluster.undoing = None
    if after.outcome is CaseOutcome.UNDONE:
        assert after.ended
    else:
        assert after.outcome is CaseOutcome.FAILED


def test_no_story_breaks_a_fail_safe() -> None:
    outcomes = [case.outcome for seed in range(10_000) for case in told(seed)]
    # All ways to end have been gone, else the stories would prove nothing.
    for outcome in (CaseOutcome.REFUSED, CaseOutcome.DONE, CaseOutcome.FAILED, CaseOutcome.UNDONE):
        assert outcomes.count(outcome) > 100, outcome


def on_duty(seed: int) -> Story:
    """A day of that seed in which whoever is on duty looks every few minutes, and nobody else acts."""
    chance = Random(seed)
    cluster = Story(a_layout(chance), chance=chance)
    cluster.modes = {one: chance.choice(["act", "act", "advise"]) for one in Action if one != "evacuate"}
    for turn in range(40):
        cluster.now += timedelta(minutes=chance.choice([1, 3, 11, 60]))
        if chance.random() < 0.3:
            cluster.something_happens()
        try:
            situation = cluster.observe("")
        except KafkaUnavailableError:
            continue
        match MitigationPolicy("orders", situation, cluster.now).decide():
            case ApplyAction(intent, _):
                _carry_out(cluster, intent, str(turn), AUTHOR)
            case NotifyOperator(intent, reason, outcome, against):
                whys = tuple(refusal.reason for refusal in against)
                began = cluster.now
                cluster.add_case(
                    MitigationCase(
                        str(turn), *intent_of(intent), None, AUTHOR, reason, began, outcome, against=whys
                    )
                )
            case UndoAction(case):
                _take_back(cluster, case)
            case ResolveCase(case):
                cluster.update_case(replace(case, ended=cluster.now))
            case FailCase(case):
                raise BrokenError(f"{case.case_id} has no end")
    return cluster


def intent_of(intent: ActionRequest) -> tuple[Action, str, int]:
    return intent.action, intent.cluster_id, intent.broker_id


def test_who_is_on_duty_breaks_no_fail_safe_and_calls_nobody_twice_for_the_same() -> None:
    outcomes: list[CaseOutcome] = []
    for seed in range(2_000):
        cluster = on_duty(seed)
        told: dict[tuple[int, Action], MitigationCase] = {}
        for case in cluster.cases.values():
            outcomes.append(case.outcome)
            if case.has_changed_cluster:
                continue
            before = told.get((case.broker_id, case.action))
            if before and before.against == case.against:
                assert any(before.began <= at <= case.began for at in cluster.well_at)
            told[case.broker_id, case.action] = case
    for outcome in CaseOutcome:
        assert outcomes.count(outcome) > 20 or outcome is CaseOutcome.BEGUN, outcome


@pytest.mark.parametrize("seed", range(0, 10_000, 97))
def test_the_same_story_ends_alike(seed: int) -> None:
    assert told(seed) == told(seed)
