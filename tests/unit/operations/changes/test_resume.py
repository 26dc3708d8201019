"""An observer that begins: it ends what an earlier one has begun, under the same ID."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.metadata import ClusterObservation
from fleetgauge_core.tables import ChangePhase
from fleetgauge_operations.changes.change_topic import select_lasting
from fleetgauge_operations.changes.plan.change_records import build_end, build_record
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


BLANK = ObservedHistory()


def resumed(lasting: Iterable[ClusterChange]) -> ObservedHistory:
    history = resume(QUIET.kafka_cluster_uuid, lasting)
    assert history.unmatched == ()
    return history.history


def follow(history: ObservedHistory, *looks: ClusterObservation) -> list[ObservedChange]:
    changes: list[ObservedChange] = []
    for observation in looks:
        history, seen = compare(history, observation)
        changes += seen
    return changes


def records(changes: list[ObservedChange], seconds: float) -> list[ClusterChange]:
    return [build_record(change, "orders", QUIET.kafka_cluster_uuid, at(seconds)) for change in changes]


@pytest.mark.parametrize("kind", GOING_ON)
def test_what_lasts_is_ended_by_the_next_observer_under_its_id(kind: str) -> None:
    first = records(follow(BLANK, look(0.0004), look(15.0001, **GOING_ON[kind])), 15)
    (begun,) = select_lasting(first)
    # It still lasts at the first look of the next observer, or is over by then.
    for looks in (
        [look(100, **GOING_ON[kind]), look(115, **OVER[kind])],
        [look(100, **OVER[kind])],
    ):
        ended = records(follow(resumed([begun]), *looks), 115)
        assert {(record.change_id, record.starts) for record in ended} == {(begun.change_id, begun.starts)}
        assert [record.phase for record in ended if record.phase != "progress"] == [ChangePhase.ENDED]
        assert select_lasting([begun, *ended]) == []


def test_a_broker_that_is_gone_stays_reported_until_it_is_back() -> None:
    looks = [look(15 * number, brokers=FENCED) for number in range(50)]
    begun = select_lasting(records(follow(BLANK, *looks), 750))
    assert [record.kind for record in begun] == ["broker_gone"]
    assert not follow(resumed(begun), look(800, brokers=FENCED), look(2_000, brokers=FENCED))
    changes = follow(resumed(begun), look(800, brokers=FENCED), look(815))
    ended = [record for record in records(changes, 815) if record.kind == "broker_gone"]
    assert [(record.change_id, record.phase) for record in ended] == [(begun[0].change_id, "ended")]


def test_what_cannot_be_read_at_the_first_look_has_not_ended() -> None:
    begun = select_lasting(records(follow(BLANK, look(0), look(15, **GOING_ON["throttle of a broker"])), 15))
    unread = look(100, settings={})
    assert not follow(resumed(begun), unread, look(115, **GOING_ON["throttle of a broker"]))


def test_what_cannot_be_followed_is_ended_under_its_own_id() -> None:
    begun = select_lasting(records(follow(BLANK, look(0), look(15, **GOING_ON["reassignment"])), 15))[0]
    others = [
        *(replace(begun, after=after) for after in ("[]", "7", '{"x": 1}', "null", "{")),
        # Of a cluster that was made anew, or an older one of which there can be only one.
        replace(begun, change_id="of-another-cluster"),
        replace(begun, kind="of-a-later-version"),
    ]
    for record in others:
        assert resume(QUIET.kafka_cluster_uuid, [record]).unmatched == (record,)
    resumed_histories = resume(QUIET.kafka_cluster_uuid, [begun, *others])
    assert set(resumed_histories.unmatched) == set(others)
    end = build_end(begun, at(100))
    assert (end.change_id, end.phase, end.ends) == (begun.change_id, "ended", at(100))
    assert select_lasting([begun, end]) == []


def test_of_two_reassignments_the_later_one_is_followed() -> None:
    begun = select_lasting(records(follow(BLANK, look(0), look(15, **GOING_ON["reassignment"])), 15))[0]
    later = select_lasting(records(follow(BLANK, look(60), look(75, **GOING_ON["reassignment"])), 75))
    assert resume(QUIET.kafka_cluster_uuid, [*later, begun]).unmatched == (begun,)


def test_a_long_list_of_throttled_replicas_keeps_its_name_and_so_its_end() -> None:
    listed = ",".join(f"{number}:1" for number in range(5_000))
    settings = {"settings": with_setting(TOPIC, **{LISTED: setting(listed)})}
    (begun,) = select_lasting(records(follow(BLANK, look(0), look(15, **settings)), 15))
    assert len(begun.after or "") < 2_000
    ended = records(follow(resumed([begun]), look(100, **settings), look(115)), 115)
    assert [(record.change_id, record.phase) for record in ended] == [(begun.change_id, "ended")]


def test_a_reassignment_of_which_the_begin_was_not_seen_ends_all_the_same() -> None:
    history, _ = compare(BLANK, look(0, **GOING_ON["reassignment"]))
    (progress,) = select_lasting(records(follow(history, look(75, **GOING_ON["reassignment"])), 75))
    ended = records(follow(resumed([progress]), look(100, topics=MOVED)), 100)
    assert [(record.change_id, record.phase) for record in ended] == [(progress.change_id, "ended")]
