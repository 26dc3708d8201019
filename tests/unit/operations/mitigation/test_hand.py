import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import TopicPartition
from fleetgauge_operations.mitigation.case import Action, Case, Intent, Order, Outcome
from fleetgauge_operations.mitigation.fail_safes import Why, refusals
from fleetgauge_operations.mitigation.hand import Hand, UndoRefusedError
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.situation import Sick, Situation
from tests.unit.operations.mitigation.world import (
    LONG_AGO,
    NOON,
    World,
    broker,
    degraded,
    layout,
    partition,
)

INTENT = Intent(Action.DEMOTE, "orders", 2)


def hand(
    world: World,
    observe: Callable[[str], Situation] | None = None,
    may_act: Callable[[], bool] = lambda: True,
    limits: Limits = DEFAULT_LIMITS,
) -> Hand:
    return Hand(observe or world.observe, world, world, may_act, world.clock, world.wait, limits)


def demoted(world: World, the_hand: Hand | None = None) -> Case:
    return (the_hand or hand(world)).treat(INTENT, "c1", "ann", "DEGRADED")


@pytest.fixture
def world() -> World:
    return World(sick=(degraded(2),))


def orders(world: World) -> dict[int, tuple[int, ...]]:
    return {place.partition: one.replicas for place, one in world.layout.partitions.items()}


def test_a_demoted_broker_leads_nothing_and_all_of_it_is_on_record(world: World) -> None:
    case = demoted(world)
    assert case.outcome is Outcome.DONE
    assert world.cases == {"c1": case}
    assert not world.layout.led_by(2)
    assert orders(world) == {0: (1, 3, 2), 1: (3, 1, 2), 2: (3, 1, 2)}
    assert (case.zone, case.reason, case.author) == ("zone-2", "DEGRADED", "ann")


def test_who_leads_nothing_becomes_the_last_all_the_same(world: World) -> None:
    world.change(TopicPartition("t", 1), leader=3)
    assert demoted(world).outcome is Outcome.DONE
    assert orders(world) == {0: (1, 3, 2), 1: (3, 1, 2), 2: (3, 1, 2)}


def test_what_is_refused_changes_nothing_and_is_on_record(world: World) -> None:
    world.sick = (degraded(2), degraded(3))
    case = demoted(world)
    assert case.outcome is Outcome.REFUSED
    assert world.cases == {"c1": case}
    assert world.said == []
    assert case.ended == case.began


def test_the_order_is_on_record_before_it_is_changed(world: World) -> None:
    """Else nobody could undo what was begun by who was killed meanwhile."""

    @dataclasses.dataclass
    class Watched(World):
        def reorder(self, *_: object) -> None:
            known = self.cases["c1"]
            assert known.outcome is Outcome.BEGUN
            assert known.orders[TopicPartition("t", 1)].before == (2, 3, 1)
            raise SystemExit

    watched = Watched(sick=(degraded(2),))
    with pytest.raises(SystemExit):
        demoted(watched)
    assert watched.cases["c1"].is_open


def test_what_has_changed_between_two_steps_stops_the_second(world: World) -> None:
    def observe(but: str) -> Situation:
        if world.said:
            world.sick = (degraded(2), degraded(3))
        return world.observe(but)

    case = demoted(world, hand(world, observe))
    assert case.outcome is Outcome.FAILED
    assert world.said == ["reorder 2"]
    assert "broker 3 is DEGRADED" in case.words[0]


def test_who_has_lost_its_seat_changes_nothing_more(world: World) -> None:
    seats = iter([True, False])
    case = demoted(world, hand(world, may_act=lambda: next(seats)))
    assert case.outcome is Outcome.FAILED
    assert world.said == ["reorder 2"]


def test_what_did_not_come_of_it_is_a_failure(world: World) -> None:
    world.deaf = True
    case = demoted(world)
    assert case.outcome is Outcome.FAILED
    assert case.words == ("broker 2 leads 1 partitions after 5 s",)
    against = refusals(INTENT, world.observe("another"), world.now)
    assert [one.why for one in against] == [Why.ALREADY, Why.CIRCUIT_OPEN, Why.TOO_SOON]


def test_undoing_restores_what_was(world: World) -> None:
    before = world.layout
    case = demoted(world)
    world.sick = ()
    case = hand(world).undo(case, None)
    assert case.outcome is Outcome.UNDONE
    assert case.ended == world.now
    assert world.cases["c1"] == case
    assert world.layout == before


def test_undoing_keeps_what_a_person_changed_since(world: World) -> None:
    case = demoted(world)
    world.sick = ()
    world.change(TopicPartition("t", 1), replicas=(1, 3, 2), leader=1)
    case = hand(world).undo(case, None)
    assert case.outcome is Outcome.UNDONE
    assert case.words == ("t-1 was changed to 1, 3, 2 since",)
    assert orders(world) == {0: (1, 2, 3), 1: (1, 3, 2), 2: (3, 1, 2)}


def test_undoing_is_refused_while_the_broker_is_sick_unless_a_person_knows_better(world: World) -> None:
    case = demoted(world)
    with pytest.raises(UndoRefusedError) as refused:
        hand(world).undo(case, None)
    assert [one.why for one in refused.value.against] == [Why.STILL_SICK]
    assert world.cases["c1"] == case
    undone = hand(world).undo(case, "a false alarm")
    assert (undone.outcome, undone.words) == (Outcome.UNDONE, ("undone: a false alarm",))


def test_undoing_that_fails_can_be_tried_again(world: World) -> None:
    before, case = world.layout, demoted(world)
    world.sick, world.deaf = (), True
    case = hand(world).undo(case, None)
    assert case.outcome is Outcome.FAILED
    assert case.words[0].startswith("broker 2 does not lead 1 of 1 partitions again")
    world.deaf = False
    assert hand(world).undo(case, None).outcome is Outcome.UNDONE
    assert world.layout == before


MINUTE = timedelta(minutes=1)
TWO_A_MINUTE = Limits(led_again_a_minute=2)


@pytest.fixture
def leader() -> World:
    """Broker 2 leads five partitions, and follows in a sixth."""
    partitions = {TopicPartition("t", number): partition(2, 3, 1) for number in range(5)}
    return World(
        layout=layout(partitions={**partitions, TopicPartition("t", 5): partition(1, 2, 3)}),
        sick=(degraded(2),),
    )


def test_it_is_given_back_in_lots_a_minute_apart(leader: World) -> None:
    before = leader.layout
    case = demoted(leader)
    leader.sick, leader.said, began = (), [], leader.now
    case = hand(leader, limits=TWO_A_MINUTE).undo(case, None)
    assert (case.outcome, case.ended) == (Outcome.UNDONE, began + 2 * MINUTE)
    assert leader.said == ["reorder 3", "elect 2", "reorder 2", "elect 2", "reorder 1", "elect 1"]
    assert leader.layout == before
    assert leader.marked == set()


def test_what_a_person_changes_between_two_lots_stays(leader: World) -> None:
    case = demoted(leader)
    leader.sick = ()

    def observe(but: str) -> Situation:
        if TopicPartition("t", 0) in leader.layout.led_by(2):
            leader.change(TopicPartition("t", 4), replicas=(1, 3, 2), leader=1)
        return leader.observe(but)

    case = hand(leader, observe, limits=TWO_A_MINUTE).undo(case, None)
    assert (case.outcome, case.words) == (Outcome.UNDONE, ("t-4 was changed to 1, 3, 2 since",))
    assert leader.layout.led_by(2) == {TopicPartition("t", number) for number in range(4)}
    assert orders(leader)[4] == (1, 3, 2)


@pytest.mark.parametrize(
    ("reason", "outcome", "led"), [(None, Outcome.FAILED, 2), ("an experiment", Outcome.UNDONE, 5)]
)
def test_who_falls_ill_between_two_lots_is_given_no_more_unless_a_person_wants_it(
    leader: World, reason: str | None, outcome: Outcome, led: int
) -> None:
    case = demoted(leader)
    leader.sick = ()

    def observe(but: str) -> Situation:
        leader.sick = (degraded(2),) if leader.layout.led_by(2) else ()
        return leader.observe(but)

    case = hand(leader, observe, limits=TWO_A_MINUTE).undo(case, reason)
    assert (case.outcome, len(leader.layout.led_by(2))) == (outcome, led)
    if not reason:
        assert case.words[0].startswith("broker 2 is DEGRADED since")
        assert leader.marked == {2}


QUARANTINE = Intent(Action.QUARANTINE_RESTART, "orders", 2)


def quarantined(world: World, the_hand: Hand | None = None) -> Case:
    return (the_hand or hand(world)).treat(QUARANTINE, "c1", "ann", "DEGRADED")


def in_sync(world: World) -> list[bool]:
    return [2 in one.in_sync for one in world.layout.partitions.values()]


def test_who_is_restarted_slowed_is_out_of_sync_until_it_is_released(world: World) -> None:
    before = world.layout
    case = quarantined(world)
    assert case.outcome is Outcome.DONE
    assert case.throttles == {"t": "0:2,1:2,2:2"}
    assert world.said == ["throttle ['t']", "restart"]
    assert in_sync(world) == [False] * 3
    world.sick = ()
    case = hand(world).undo(case, None)
    assert case.outcome is Outcome.UNDONE
    assert in_sync(world) == [True] * 3
    assert world.layout.throttled_topics == before.throttled_topics


def test_where_nothing_comes_in_nobody_can_be_kept_out(world: World) -> None:
    world.idle = frozenset(world.layout.partitions)
    case = quarantined(world)
    assert case.outcome is Outcome.FAILED
    assert "in sync with everything" in case.words[0]


def test_a_restart_that_fails_is_said_and_the_throttle_can_be_taken_back(world: World) -> None:
    world.stuck = True
    case = quarantined(world)
    assert (case.outcome, case.words) == (Outcome.FAILED, ("systemctl ended with 1",))
    world.sick = ()
    assert hand(world).undo(case, None).outcome is Outcome.UNDONE
    assert not world.layout.throttled_topics


RESTART = Intent(Action.RESTART, "orders", 2)
DOWN = Sick(2, HealthState.BROKER_DOWN, LONG_AGO)


def test_a_restart_is_over_once_the_broker_is_back(world: World) -> None:
    world.sick = (DOWN,)
    case = hand(world).treat(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open, case.ended) == (Outcome.DONE, False, world.now)
    assert world.said == ["restart"]


def test_who_was_killed_counts_as_back_only_once_its_session_would_have_ended(world: World) -> None:
    """A hook may only have asked for it: for seconds the broker that is gone looks well and in sync."""

    def observe(but: str) -> Situation:
        if "restart" in world.said and world.now >= NOON + timedelta(seconds=9):
            gone = dataclasses.replace(world.layout.brokers[2], fenced=True)
            world.layout = dataclasses.replace(world.layout, brokers={**world.layout.brokers, 2: gone})
        return world.observe(but)

    world.sick = (DOWN,)
    case = hand(world, observe).treat(RESTART, "c1", "ann", "STORAGE_STALLED")
    assert (case.outcome, case.words) == (Outcome.FAILED, ("broker 2 is not back after 300 s",))


def test_that_undoing_is_begun_is_on_record_before_anything_is_changed(world: World) -> None:
    """Else it would be done again and again by who is on duty and cannot put on record that it is done."""

    @dataclasses.dataclass
    class Full(World):
        full: bool = False

        def amend(self, case: Case) -> None:
            if self.full:
                raise OSError("no space")
            super().amend(case)

    one = Full(sick=(degraded(2),))
    case = demoted(one)
    one.sick, one.full, one.said = (), True, []
    with pytest.raises(OSError, match="no space"):
        hand(one).undo(case, None)
    assert (one.said, one.cases["c1"]) == ([], case)
    one.full = False
    undone = hand(one).undo(case, "all is well")
    assert (undone.undone_since, undone.overruled) == (one.now, True)


def test_to_close_what_had_failed_is_no_verdict_on_what_may_be_done(world: World) -> None:
    world.deaf = True
    failed = demoted(world)
    world.deaf = False
    closed = hand(world).undo(failed, "seen to")
    assert (failed.outcome, closed.outcome, closed.overruled) == (Outcome.FAILED, Outcome.UNDONE, False)


def test_an_order_that_a_person_gives_between_look_and_act_stays(world: World) -> None:
    @dataclasses.dataclass
    class Between(World):
        def mark(self, broker_id: int, *, demoted: bool) -> None:
            super().mark(broker_id, demoted=demoted)
            if demoted:
                self.change(TopicPartition("t", 1), replicas=(2, 1, 3))

    one = Between(sick=(degraded(2),))
    case = demoted(one)
    assert (case.outcome, case.words) == (Outcome.FAILED, ("another order since",))
    assert orders(one) == {0: (1, 2, 3), 1: (2, 1, 3), 2: (3, 1, 2)}


def test_a_restart_that_failed_is_closed_by_who_has_seen_to_it(world: World) -> None:
    world.sick, world.stuck = (DOWN,), True
    case = hand(world).treat(RESTART, "c1", "ann", "BROKER_DOWN")
    assert (case.outcome, case.is_open) == (Outcome.FAILED, True)
    world.sick = ()
    assert hand(world).undo(case, "started by hand").outcome is Outcome.UNDONE


def test_who_is_out_of_sync_for_a_moment_as_it_starts_is_not_kept_out(world: World) -> None:
    """As every broker is that has just been restarted."""

    def observe(but: str) -> Situation:
        if "restart" in world.said and world.now > NOON + timedelta(seconds=5):
            for place, one in world.layout.partitions.items():
                world.change(place, in_sync=one.in_sync | {2})
        return world.observe(but)

    case = quarantined(world, hand(world, observe))
    assert case.outcome is Outcome.FAILED
    assert "in sync with everything" in case.words[0]


def test_who_has_much_to_copy_is_released_all_the_same(world: World) -> None:
    case = quarantined(world)
    world.sick, world.back = (), False
    case = hand(world).undo(case, None)
    assert case.outcome is Outcome.UNDONE
    assert case.words == ("broker 2 is behind in 3 of 3 partitions after 300 s: it copies on",)


@pytest.mark.parametrize("action", [Action.DEMOTE, Action.QUARANTINE_RESTART])
def test_the_case_of_a_broker_that_is_gone_is_closed_and_leaves_nothing_behind(
    world: World, action: Action
) -> None:
    case = hand(world).treat(Intent(action, "orders", 2), "c1", "ann", "DEGRADED")
    world.sick = ()
    world.layout = dataclasses.replace(world.layout, brokers={1: broker(1), 3: broker(3)})
    after = hand(world).undo(case, "replaced by broker 4")
    assert after.outcome is Outcome.UNDONE
    assert after.words[0] == "undone: replaced by broker 4"
    assert "broker 2 is gone" in after.words[-1]
    assert (world.marked, world.layout.throttled_topics) == (set(), frozenset())


@pytest.mark.parametrize("fault", [KeyError("min.insync.replicas"), OSError("no space"), RuntimeError()])
def test_whatever_goes_wrong_once_it_has_begun_is_a_failure_on_record(world: World, fault: Exception) -> None:
    def observe(but: str) -> Situation:
        if world.said:
            raise fault
        return world.observe(but)

    case = demoted(world, hand(world, observe))
    assert (case.outcome, world.cases["c1"]) == (Outcome.FAILED, case)
    assert case.words == (f"{type(fault).__name__}: {fault}",)


def test_what_cannot_be_written_down_is_said(world: World) -> None:
    @dataclasses.dataclass
    class Unwritten(World):
        def amend(self, case: Case) -> None:
            raise RuntimeError("commit failed")

    unwritten = Unwritten(sick=(degraded(2),))
    case = demoted(unwritten)
    assert (case.outcome, case.words) == (Outcome.DONE, ("not on record: RuntimeError: commit failed",))
    against = refusals(INTENT, unwritten.observe("another"), unwritten.now)
    assert Why.CIRCUIT_OPEN in [one.why for one in against]


def test_agents_are_told_of_a_demotion_before_it_and_of_its_end(world: World) -> None:
    @dataclasses.dataclass
    class Watched(World):
        def reorder(
            self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, Order]
        ) -> None:
            assert self.marked == {2}
            super().reorder(orders, known)

    watched = Watched(sick=(degraded(2),))
    case = demoted(watched)
    assert watched.marked == {2}
    watched.sick = ()
    hand(watched).undo(case, None)
    assert watched.marked == set()
