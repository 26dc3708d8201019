"""Each fail-safe refuses by itself, in a situation where nothing else forbids anything."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import TopicPartition
from fleetgauge_operations.mitigation.case import Action, Case, Intent, Order, Outcome
from fleetgauge_operations.mitigation.demotion import restored
from fleetgauge_operations.mitigation.fail_safes import Why, refusals, undo_refusals
from fleetgauge_operations.mitigation.situation import Sick, Situation
from tests.unit.operations.mitigation.world import LONG_AGO, NOON, broker, degraded, layout, partition

INTENT = Intent(Action.DEMOTE, "orders", 2)
QUARANTINE = Intent(Action.QUARANTINE_RESTART, "orders", 2)
RESTART = Intent(Action.RESTART, "orders", 2)
FINE = Situation(layout(), (degraded(2),))


def case(broker_id: int, outcome: Outcome, minutes_ago: float = 60 * 48, zone: str | None = None) -> Case:
    began = NOON - timedelta(minutes=minutes_ago)
    zone = zone or f"zone-{broker_id}"
    return Case("c1", Action.DEMOTE, "orders", broker_id, zone, "ann", "DEGRADED", began, outcome)


def why(situation: Situation, intent: Intent = INTENT) -> list[Why]:
    return [one.why for one in refusals(intent, situation, NOON)]


def test_a_degraded_broker_of_a_well_cluster_may_be_demoted() -> None:
    assert refusals(INTENT, FINE, NOON) == ()


OTHERS = layout((broker(1), broker(2), broker(3, fenced=True)))
FENCED = layout((broker(1), broker(2, fenced=True), broker(3)))
ALONE = layout(partitions={TopicPartition("single", 0): partition(2)})
LAST = layout(partitions={TopicPartition("t", 0): partition(1, 3, 2)})
SHORT = layout(partitions={TopicPartition("t", 0): partition(1, 2, 3, out=(3,))})
NOBODY_ELSE = layout(partitions={TopicPartition("t", 0): partition(2, 1, out=(1,))})
MOVING = layout(reassigning=[TopicPartition("t", 1)])
UNDONE_TODAY = tuple(case(1, Outcome.UNDONE, ago) for ago in (20, 60, 23 * 60))


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (replace(FINE, layout=layout((broker(1), broker(3)))), Why.NOT_REGISTERED),
        (replace(FINE, layout=FENCED), Why.FENCED),
        (replace(FINE, layout=LAST), Why.NOTHING_TO_TAKE),
        (replace(FINE, sick=()), Why.NO_FINDING),
        (replace(FINE, sick=(Sick(2, HealthState.BROKER_DOWN, LONG_AGO),)), Why.NO_FINDING),
        (replace(FINE, sick=(degraded(2, NOON - timedelta(seconds=74)),)), Why.TOO_YOUNG),
        (replace(FINE, sick=(degraded(2), Sick(None, HealthState.NO_DATA, LONG_AGO))), Why.NOT_MEASURED),
        (replace(FINE, watched=False), Why.NO_WATCH),
        (replace(FINE, sick=(degraded(2), degraded(3))), Why.SECOND_SICK),
        (replace(FINE, layout=OTHERS), Why.OTHER_FENCED),
        (replace(FINE, layout=SHORT), Why.MIN_IN_SYNC),
        (replace(FINE, layout=MOVING), Why.MOVING),
        (replace(FINE, rolling=True), Why.ROLLING),
        (replace(FINE, planned={2}), Why.PLANNED),
        (replace(FINE, planned={None}), Why.PLANNED),
        (replace(FINE, cases=(case(2, Outcome.DONE),)), Why.ALREADY),
        (replace(FINE, cases=(case(3, Outcome.DONE, zone="zone-2"),)), Why.OTHER_BROKER),
        (replace(FINE, cases=(case(3, Outcome.DONE),)), Why.OTHER_ZONE),
        (replace(FINE, cases=(case(1, Outcome.UNDONE, 9),)), Why.TOO_SOON),
        (replace(FINE, cases=UNDONE_TODAY), Why.TOO_MANY),
        (replace(FINE, modes={"demote": "off"}), Why.OFF),
    ],
)
def test_each_refuses_by_itself(situation: Situation, expected: Why) -> None:
    assert why(situation) == [expected]


def test_who_is_demoted_already_may_be_kept_out_of_sync_if_somebody_has_said_how_to_restart_it() -> None:
    could = replace(FINE, can_restart=True, cases=(case(2, Outcome.DONE),))
    assert why(could, QUARANTINE) == []
    assert why(replace(could, can_restart=False), QUARANTINE) == [Why.NO_RESTART]
    assert why(replace(could, cases=(case(3, Outcome.DONE),)), QUARANTINE) == [Why.OTHER_ZONE]
    cut_off = Sick(2, HealthState.NETWORK_UNAVAILABLE, LONG_AGO)
    assert why(replace(could, sick=(cut_off,)), QUARANTINE) == [Why.NO_FINDING]


DOWN = Sick(2, HealthState.BROKER_DOWN, LONG_AGO)


def test_who_is_down_may_be_restarted_though_it_is_fenced_and_nobody_else_has_what_it_has() -> None:
    down = replace(FINE, sick=(DOWN,), can_restart=True, layout=FENCED)
    assert why(down, RESTART) == []
    alone = layout(FENCED.brokers.values(), {TopicPartition("single", 0): partition(2)})
    assert why(replace(down, layout=alone), RESTART) == []
    young = replace(DOWN, since=NOON - timedelta(seconds=119))
    assert why(replace(down, sick=(young,)), RESTART) == [Why.TOO_YOUNG]
    just_now = replace(DOWN, called_since=NOON - timedelta(seconds=6))
    assert why(replace(down, sick=(just_now,)), RESTART) == [Why.TOO_YOUNG]
    assert why(replace(down, can_restart=False), RESTART) == [Why.NO_RESTART]
    assert why(replace(FINE, can_restart=True), RESTART) == [Why.NO_FINDING]


def test_two_restarts_within_half_an_hour_are_enough() -> None:
    down = replace(FINE, sick=(DOWN,), can_restart=True, layout=FENCED)
    restarts = tuple(replace(case(3, Outcome.DONE, ago), action=Action.RESTART) for ago in (29, 11))
    assert why(replace(down, cases=restarts), RESTART) == [Why.TOO_MANY]
    assert why(replace(down, cases=restarts[1:]), RESTART) == []


def test_what_is_proposed_is_never_done() -> None:
    assert why(FINE, Intent(Action.EVACUATE, "orders", 2)) == [Why.PROPOSED_ONLY]


def test_what_somebody_else_slows_is_not_slowed_again() -> None:
    theirs = replace(layout(), throttled_topics=frozenset({"t"}))
    assert why(replace(FINE, can_restart=True, layout=theirs), QUARANTINE) == [Why.THROTTLED]
    assert why(replace(FINE, layout=theirs)) == []


def test_who_alone_has_a_partition_or_is_alone_in_sync_keeps_it() -> None:
    for alone in (ALONE, NOBODY_ELSE):
        assert why(replace(FINE, layout=alone)) == [Why.ONLY_REPLICA, Why.MIN_IN_SYNC]


def test_what_failed_stands_in_the_way_of_all_else_until_it_is_undone() -> None:
    assert why(replace(FINE, cases=(case(3, Outcome.FAILED),))) == [Why.OTHER_ZONE, Why.CIRCUIT_OPEN]
    assert why(replace(FINE, cases=(case(3, Outcome.BEGUN),))) == [Why.OTHER_ZONE, Why.CIRCUIT_OPEN]
    assert why(replace(FINE, cases=(case(3, Outcome.UNDONE),))) == []


def test_what_was_refused_or_is_long_ago_counts_for_nothing() -> None:
    refused = tuple(case(1, Outcome.REFUSED, ago) for ago in (1, 2, 3))
    long_ago = tuple(case(1, Outcome.UNDONE, 24 * 60 + ago) for ago in (0, 1, 2))
    assert why(replace(FINE, cases=refused + long_ago)) == []


def test_a_person_may_do_it_for_a_reason_of_their_own_but_past_no_fail_safe() -> None:
    mine = replace(INTENT, reason="its disk is to be changed")
    assert why(replace(FINE, sick=()), mine) == []
    assert why(replace(FINE, sick=(), watched=False, planned={2}), mine) == []
    assert why(replace(FINE, planned={3})) == []
    assert why(replace(FINE, sick=(), layout=SHORT), mine) == [Why.MIN_IN_SYNC]


def test_a_cut_off_broker_is_acted_upon_after_half_a_minute() -> None:
    for age_s, expected in ((29, [Why.TOO_YOUNG]), (30, [])):
        cut_off = Sick(2, HealthState.NETWORK_UNAVAILABLE, NOON - timedelta(seconds=age_s))
        assert why(replace(FINE, sick=(cut_off,))) == expected


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (replace(FINE, sick=()), []),
        (FINE, [Why.STILL_SICK]),
        (replace(FINE, sick=(), layout=FENCED), [Why.FENCED]),
        (replace(FINE, sick=(), layout=MOVING), [Why.MOVING]),
        (replace(FINE, sick=(), layout=layout((broker(1), broker(3)))), [Why.NOT_REGISTERED]),
    ],
)
def test_undoing_has_fail_safes_of_its_own(situation: Situation, expected: list[Why]) -> None:
    done = replace(case(2, Outcome.DONE), orders={TopicPartition("t", 1): Order((2, 3, 1), (3, 1, 2))})
    back = restored(situation.layout, done.orders)
    assert [one.why for one in undo_refusals(done, back, situation, None)] == expected


def test_a_case_of_a_broker_that_is_gone_is_closed_for_a_reason() -> None:
    done = replace(case(2, Outcome.DONE), orders={TopicPartition("t", 1): Order((2, 3, 1), (3, 1, 2))})
    gone = replace(FINE, sick=(), layout=layout((broker(1), broker(3))))
    assert undo_refusals(done, restored(gone.layout, done.orders), gone, "replaced by 4") == ()


def test_who_is_behind_is_not_given_its_lead_back() -> None:
    """Behind in what it is to lead; for who is on duty, behind anywhere."""
    done = replace(case(2, Outcome.DONE), orders={TopicPartition("t", 1): Order((2, 3, 1), (3, 1, 2))})
    for place, persons_too in ((TopicPartition("t", 1), True), (TopicPartition("followed", 0), False)):
        led = {TopicPartition("t", 1): partition(3, 1, 2), TopicPartition("followed", 0): partition(3, 1, 2)}
        behind = layout(partitions=led | {place: partition(3, 1, 2, out=(2,))})
        situation, back = replace(FINE, sick=(), layout=behind), restored(behind, done.orders)
        (refused,) = undo_refusals(done, back, situation, None)
        assert refused.why is Why.NOT_IN_SYNC
        assert f"{place.topic}-{place.partition}" in refused.words
        assert bool(undo_refusals(done, back, situation, "now")) is persons_too
