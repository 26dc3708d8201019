"""Thousands of stories of faults, with somebody who wants to act all the time: no fail-safe is ever broken.

What may be done is judged here by rules of its own, on the cluster as it is when it is changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import (
    ClusterMetadata,
    KafkaUnavailableError,
    PartitionMetadata,
    TopicPartition,
)
from fleetgauge_operations.mitigation.case import Action, Case, Intent, Order, Outcome
from fleetgauge_operations.mitigation.duty import AUTHOR, Duty, GiveUp, HandOver, Restore, Treat, Withdraw
from fleetgauge_operations.mitigation.hand import Hand, UndoRefusedError
from fleetgauge_operations.mitigation.limits import Limits
from fleetgauge_operations.mitigation.situation import Sick, Situation
from tests.unit.operations.mitigation.world import BrokenError, World, broker, layout

STEPS = 12
ONE_A_MINUTE = Limits(led_again_a_minute=1)
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
class Story(World):
    """A world in which things happen, also between a look and a change, and which judges every demotion."""

    chance: Random = field(default_factory=Random)
    treating: tuple[str, int] | None = None
    undoing: int | None = None
    """The broker that something is given back to, by nobody in person."""
    acted_at: list[datetime] = field(default_factory=list)
    well_at: list[datetime] = field(default_factory=list)

    def observe(self, but: str) -> Situation:
        if self.chance.random() < 0.1:
            self.something_happens()
        if self.chance.random() < 0.02:
            raise KafkaUnavailableError("no answer")
        return super().observe(but)

    def reorder(
        self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, Order]
    ) -> None:
        if self.treating:
            self.judge(*self.treating)
            self.acted_at.append(self.now)
        if self.undoing:
            self.judge_giving_back(self.undoing, orders)
        super().reorder(orders, known)

    def elect(self, places: Iterable[TopicPartition]) -> None:
        if self.treating:
            self.judge(*self.treating)
        super().elect(places)

    def throttle(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        if self.treating:
            self.judge(*self.treating)
            self.acted_at.append(self.now)
        super().throttle(broker_id, replicas)

    def restart(self, broker_id: int) -> None:
        if self.treating:
            self.judge(*self.treating)
            if self.cases[self.treating[0]].action is Action.RESTART:
                self.acted_at.append(self.now)
        super().restart(broker_id)

    def judge(self, case_id: str, broker_id: int) -> None:
        try:
            self._judge(case_id, broker_id)
        except AssertionError as error:
            raise BrokenError(case_id) from error

    def judge_giving_back(self, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]) -> None:
        try:
            to_lead = [place for place, replicas in orders.items() if replicas[0] == broker_id]
            assert len(to_lead) <= ONE_A_MINUTE.led_again_a_minute
            assert broker_id not in {one.broker_id for one in self.sick}
            assert not self.layout.brokers[broker_id].fenced
            assert not self.layout.reassigning
            for one in self.layout.replicated_on(broker_id).values() if to_lead else ():
                assert broker_id in one.in_sync
        except AssertionError as error:
            raise BrokenError(broker_id) from error

    def _judge(self, case_id: str, broker_id: int) -> None:
        brokers, partitions = self.layout.brokers, self.layout.partitions
        action = self.cases[case_id].action
        assert not any(one.fenced for one in brokers.values() if one.broker_id != broker_id)
        fenced = brokers[broker_id].fenced
        assert action is Action.RESTART or not fenced
        assert {one.broker_id for one in self.sick} == {broker_id}
        assert any(one.phase in HELPS[action] for one in self.sick)
        assert not self.layout.reassigning
        for one in partitions.values():
            if broker_id in one.replicas and not fenced:
                assert len(one.in_sync - {broker_id}) >= 2
        others = [one for one in self.cases.values() if one.is_open and one.case_id != case_id]
        # The same broker may be kept out of sync once it leads nothing.
        assert all(one.broker_id == broker_id and one.outcome is not Outcome.FAILED for one in others)
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
        return self.chance.choice(sorted(self.layout.brokers))

    def any_place(self) -> TopicPartition:
        return self.chance.choice(sorted(self.layout.partitions))

    def fall_ill(self) -> None:
        since = self.now - timedelta(seconds=self.chance.choice([0, 40, 600]))
        self.sick = (*self.sick, Sick(self.any_broker(), self.chance.choice(PHASES), since))
        self.well_since = {
            b: at for b, at in self.well_since.items() if b not in {one.broker_id for one in self.sick}
        }

    def get_well(self) -> None:
        self.well_since |= {one.broker_id: self.now for one in self.sick if one.broker_id is not None}
        self.sick = ()
        self.well_at.append(self.now)
        partitions = {
            place: replace(one, in_sync=frozenset(one.replicas))
            for place, one in self.layout.partitions.items()
        }
        brokers = {number: replace(one, fenced=False) for number, one in self.layout.brokers.items()}
        self.layout = replace(self.layout, brokers=brokers, partitions=partitions, reassigning=frozenset())

    def fence(self) -> None:
        number = self.any_broker()
        one = replace(self.layout.brokers[number], fenced=True)
        self.layout = replace(self.layout, brokers={**self.layout.brokers, number: one})

    def fall_behind(self) -> None:
        place = self.any_place()
        one = self.layout.partitions[place]
        out = self.chance.choice([b for b in one.replicas if b != one.leader])
        self.change(place, in_sync=one.in_sync - {out})

    def move(self) -> None:
        self.layout = replace(self.layout, reassigning=frozenset({self.any_place()}))

    def reassign(self) -> None:
        """A person changes an order."""
        place = self.any_place()
        replicas = list(self.layout.partitions[place].replicas)
        self.chance.shuffle(replicas)
        self.change(place, replicas=tuple(replicas))

    def hand(self) -> Hand:
        return Hand(
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
    return layout(map(broker, brokers), partitions)


def told(seed: int) -> tuple[Case, ...]:
    """The story of that seed: the cases as they ended."""
    chance = Random(seed)
    world = Story(a_layout(chance), chance=chance)
    for step in range(STEPS):
        world.now += timedelta(minutes=chance.choice([1, 5, 11, 11, 60, 60 * 9]))
        if chance.random() < 0.6:
            world.something_happens()
        if chance.random() < 0.5 and world.sick:
            _treat(world, str(step))
        else:
            _undo(world)
    return tuple(world.cases.values())


def _treat(world: Story, case_id: str) -> None:
    sick = world.sick[0]
    assert sick.broker_id is not None
    helps = [one for one in Action if sick.phase in HELPS[one]]
    action = world.chance.choice(helps if world.chance.random() < 0.8 else list(Action))
    _carry_out(world, Intent(action, "orders", sick.broker_id), case_id, "story")


def _carry_out(world: Story, intent: Intent, case_id: str, author: str) -> None:
    world.treating = (case_id, intent.broker_id)
    try:
        case = world.hand().treat(intent, case_id, author, "sick")
    except KafkaUnavailableError:
        assert case_id not in world.cases
        return
    finally:
        world.treating = None
    if case.outcome is Outcome.REFUSED:
        assert case.words
        assert world.now not in world.acted_at


def _undo(world: Story) -> None:
    case = next((one for one in world.cases.values() if one.is_open), None)
    if case:
        _take_back(world, case)


def _take_back(world: Story, case: Case) -> None:
    world.undoing = case.broker_id
    try:
        after = world.hand().undo(case, None)
    except (KafkaUnavailableError, UndoRefusedError):
        assert world.cases[case.case_id] == case
        return
    finally:
        world.undoing = None
    if after.outcome is Outcome.UNDONE:
        assert after.ended
    else:
        assert after.outcome is Outcome.FAILED


def test_no_story_breaks_a_fail_safe() -> None:
    outcomes = [case.outcome for seed in range(10_000) for case in told(seed)]
    # All ways to end have been gone, else the stories would prove nothing.
    for outcome in (Outcome.REFUSED, Outcome.DONE, Outcome.FAILED, Outcome.UNDONE):
        assert outcomes.count(outcome) > 100, outcome


def on_duty(seed: int) -> Story:
    """A day of that seed in which whoever is on duty looks every few minutes, and nobody else acts."""
    chance = Random(seed)
    world = Story(a_layout(chance), chance=chance)
    world.modes = {one: chance.choice(["act", "act", "advise"]) for one in Action if one != "evacuate"}
    for turn in range(40):
        world.now += timedelta(minutes=chance.choice([1, 3, 11, 60]))
        if chance.random() < 0.3:
            world.something_happens()
        try:
            situation = world.observe("")
        except KafkaUnavailableError:
            continue
        match Duty("orders", situation, world.now).next_step():
            case Treat(intent, _):
                _carry_out(world, intent, str(turn), AUTHOR)
            case HandOver(intent, reason, outcome, against):
                whys = tuple(one.why for one in against)
                began = world.now
                world.add(
                    Case(str(turn), *intent_of(intent), None, AUTHOR, reason, began, outcome, against=whys)
                )
            case Restore(case):
                _take_back(world, case)
            case Withdraw(case):
                world.amend(replace(case, ended=world.now))
            case GiveUp(case):
                raise BrokenError(f"{case.case_id} has no end")
    return world


def intent_of(intent: Intent) -> tuple[Action, str, int]:
    return intent.action, intent.cluster_id, intent.broker_id


def test_who_is_on_duty_breaks_no_fail_safe_and_calls_nobody_twice_for_the_same() -> None:
    outcomes: list[Outcome] = []
    for seed in range(2_000):
        world = on_duty(seed)
        told: dict[tuple[int, Action], Case] = {}
        for case in world.cases.values():
            outcomes.append(case.outcome)
            if case.acted:
                continue
            before = told.get((case.broker_id, case.action))
            if before and before.against == case.against:
                assert any(before.began <= at <= case.began for at in world.well_at)
            told[case.broker_id, case.action] = case
    for outcome in Outcome:
        assert outcomes.count(outcome) > 20 or outcome is Outcome.BEGUN, outcome


@pytest.mark.parametrize("seed", range(0, 10_000, 97))
def test_the_same_story_ends_alike(seed: int) -> None:
    assert told(seed) == told(seed)
