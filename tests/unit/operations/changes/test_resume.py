"""An observer that begins: it ends what an earlier one has begun, under the same ID."""

from dataclasses import replace

import pytest

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.metadata import ClusterObservation
from fleetgauge_core.tables import ChangePhase
from fleetgauge_operations.changes.change_records import build_record
from fleetgauge_operations.changes.change_topic import select_lasting
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from fleetgauge_operations.changes.plan.observed_change import ObservedChange
from fleetgauge_operations.changes.plan.resume import resume
from tests.unit.operations.changes.looks import (
    BROKER_1,
    QUIET,
    TOPIC,
    at,
    broker,
    look,
    move,
    partition,
    setting,
    topic,
    with_setting,
)

RATE = "leader__replication__throttled__rate"
LISTED = "leader__replication__throttled__replicas"
MOVING = {"orders": topic(partition(1, [1, 3, 2], [1, 2]), partition(2, [2, 3]), partition(3, [3, 1]))}
MOVED = {"orders": topic(partition(1, [1, 3]), partition(2, [2, 3]), partition(3, [3, 1]))}
FENCED = QUIET.brokers | {2: broker(2, fenced=True)}
GOING_ON = {
    "reassignment": {"topics": MOVING, "moves": move(0, [3], [2])},
    "throttle of a broker": {"settings": with_setting(BROKER_1, **{RATE: setting("10")})},
    "throttle of a topic": {"settings": with_setting(TOPIC, **{LISTED: setting("*")})},
}
OVER = {"reassignment": {"topics": MOVED}, "throttle of a broker": {}, "throttle of a topic": {}}


def follow(history: ObservedHistory, *looks: ClusterObservation) -> list[ObservedChange]:
    changes: list[ObservedChange] = []
    for observation in looks:
        history, seen = compare(history, observation)
        changes += seen
    return changes


def records(changes: list[ObservedChange], seconds: float) -> list[ClusterChange]:
    return [build_record(change, "orders", "uuid", at(seconds)) for change in changes]


@pytest.mark.parametrize("kind", GOING_ON)
def test_what_lasts_is_ended_by_the_next_observer_under_its_id(kind: str) -> None:
    first = records(follow(ObservedHistory(), look(0.0004), look(15.0001, **GOING_ON[kind])), 15)
    (begun,) = select_lasting(first)
    # It still lasts at the first look of the next observer, or is over by then.
    for looks in (
        [look(100, **GOING_ON[kind]), look(115, **OVER[kind])],
        [look(100, **OVER[kind])],
    ):
        ended = records(follow(resume([begun]), *looks), 115)
        assert {(record.change_id, record.starts) for record in ended} == {(begun.change_id, begun.starts)}
        assert [record.phase for record in ended if record.phase != "progress"] == [ChangePhase.ENDED]
        assert select_lasting([begun, *ended]) == []


def test_a_broker_that_is_gone_stays_reported_until_it_is_back() -> None:
    looks = [look(15 * number, brokers=FENCED) for number in range(50)]
    begun = select_lasting(records(follow(ObservedHistory(), *looks), 750))
    assert [record.kind for record in begun] == ["broker_gone"]
    assert not follow(resume(begun), look(800, brokers=FENCED), look(2_000, brokers=FENCED))
    changes = follow(resume(begun), look(800, brokers=FENCED), look(815))
    ended = [record for record in records(changes, 815) if record.kind == "broker_gone"]
    assert [(record.change_id, record.phase) for record in ended] == [(begun[0].change_id, "ended")]


def test_what_cannot_be_read_at_the_first_look_has_not_ended() -> None:
    begun = select_lasting(
        records(follow(ObservedHistory(), look(0), look(15, **GOING_ON["throttle of a broker"])), 15)
    )
    unread = look(100, settings={})
    assert not follow(resume(begun), unread, look(115, **GOING_ON["throttle of a broker"]))


def test_a_record_of_another_version_is_left_out() -> None:
    begun = select_lasting(
        records(follow(ObservedHistory(), look(0), look(15, **GOING_ON["reassignment"])), 15)
    )
    for after in ("[]", "7", '{"x": 1}', "null", "{"):
        assert not follow(resume([replace(begun[0], after=after)]), look(100))
