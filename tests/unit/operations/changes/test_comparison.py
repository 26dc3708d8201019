"""Changes of brokers, leaderships, topics and the whole cluster, and what is no change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import (
    ClusterObservation,
    ObservedBroker,
    ObservedLogDir,
    ObservedQuorum,
    ObservedTopic,
)
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.observed_change import MAX_CHANGES_OF_KIND
from tests.unit.operations.changes.looks import (
    BROKERS,
    ORDERS,
    QUIET,
    at,
    broker,
    follow,
    kinds,
    look,
    only,
    partition,
    topic,
)


def test_equal_looks_and_parts_that_cannot_be_read_show_no_change() -> None:
    unread = ClusterObservation(at(15), at(15), QUIET.kafka_cluster_uuid, failures={"topics": "no right"})
    assert not follow(unread, look(30), look(45))


def test_a_cluster_that_was_made_anew_is_looked_at_for_the_first_time() -> None:
    assert not follow(look(15, kafka_cluster_uuid="another", topics={}, brokers={9: broker(9)}))


@pytest.mark.parametrize(
    ("brokers", "kind", "before", "after"),
    [
        (
            BROKERS | {4: broker(4)},
            ChangeKind.BROKER_REGISTERED,
            None,
            {"listener": "host-4:9092", "rack": "z1", "fenced": False},
        ),
        (
            {1: BROKERS[1], 2: BROKERS[2]},
            ChangeKind.BROKER_UNREGISTERED,
            {"listener": "host-3:9092", "rack": "z1", "fenced": False},
            None,
        ),
        (
            BROKERS | {2: broker(2, fenced=True)},
            ChangeKind.BROKER_FENCED,
            {"fenced": False},
            {"fenced": True},
        ),
        (BROKERS | {2: broker(2, rack=None)}, ChangeKind.BROKER_RACK, {"rack": "z1"}, {"rack": None}),
        (
            BROKERS | {2: broker(2, port=9)},
            ChangeKind.BROKER_LISTENER,
            {"listener": "host-2:9092"},
            {"listener": "host-2:9"},
        ),
    ],
)
def test_registrations(
    brokers: dict[int, ObservedBroker], kind: ChangeKind, before: object, after: object
) -> None:
    change = only(follow(look(15, brokers=brokers)))
    assert (change.kind, change.before, change.after) == (kind, before, after)
    assert (change.starts, change.ends) == (at(0), at(15))


def test_a_part_that_was_not_read_for_a_while_changed_since_it_was_read_last() -> None:
    unread = look(15, brokers=None)
    change = only(follow(unread, look(30, brokers=BROKERS | {2: broker(2, fenced=True)})))
    assert (change.starts, change.ends) == (at(0), at(30))


def test_a_broker_of_an_older_kafka_that_is_not_listed_is_fenced_and_a_fenced_one_keeps_its_address() -> None:
    live = {number: BROKERS[number] for number in (1, 2)}
    changes = follow(look(15, brokers=live, lists_fenced=False), look(30, lists_fenced=False))
    assert kinds(changes) == [ChangeKind.BROKER_FENCED, ChangeKind.BROKER_UNFENCED]
    without_address = BROKERS[2]._replace(host="", is_fenced=True)
    assert kinds(follow(look(15, brokers=BROKERS | {2: without_address}))) == [ChangeKind.BROKER_FENCED]


def test_a_broker_that_stays_fenced_is_gone_after_ten_minutes_until_it_is_back() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    changes = follow(*(look(15 * number, brokers=fenced) for number in range(1, 60)), look(900))
    gone = [change for change in changes if change.kind is ChangeKind.BROKER_GONE]
    assert [(change.phase, change.starts, change.ends) for change in gone] == [
        (ChangePhase.BEGUN, at(15), None),
        (ChangePhase.ENDED, at(15), at(900)),
    ]


def test_log_directories_go_offline_and_are_cordoned() -> None:
    both = {"/data": ObservedLogDir(False, False), "/more": ObservedLogDir(True, True)}
    quiet = {"/data": ObservedLogDir(False, False), "/more": ObservedLogDir(False, False)}
    log_dirs = QUIET.log_dirs
    changes = follow(
        look(15, log_dirs={**log_dirs, 1: quiet}),
        look(30, log_dirs={**log_dirs, 1: both}),
        look(45, log_dirs={**log_dirs, 1: quiet}),
    )
    assert [(change.kind, change.broker_id) for change in changes] == [
        (ChangeKind.LOG_DIR_OFFLINE, 1),
        (ChangeKind.BROKER_CORDONED, 1),
        (ChangeKind.LOG_DIR_ONLINE, 1),
        (ChangeKind.BROKER_UNCORDONED, 1),
    ]
    assert (changes[1].before, changes[1].after) == ({"cordoned": []}, {"cordoned": ["/more"]})


def test_leaderships_are_counted_by_broker_over_a_minute_and_balance_is_told_from_failover() -> None:
    failed_over = {
        "orders": topic(partition(2, [1, 2], [2], 2), partition(2, [2, 3]), partition(3, [3, 1], [3]))
    }
    further = {
        "orders": topic(partition(2, [1, 2], [2], 2), partition(3, [2, 3], [3], 2), partition(3, [3, 1], [3]))
    }
    changes = follow(look(15, topics=failed_over), look(30, topics=further), look(120))
    first, second, third = changes
    assert (first.before, first.after) == (
        {"leaders": {"1": 1, "2": 1, "3": 1}},
        {"leaders": {"2": 2, "3": 1}},
    )
    assert first.evidence["failed_over"] == 1
    assert (first.evidence["lost"], first.evidence["gained"]) == ({"1": 1}, {"2": 1})
    assert first.evidence["under_replicated_partitions"] == 2
    # Within a minute the later record counts the moves of both looks.
    assert (second.starts, second.evidence["moves"]) == (first.starts, 2)
    assert (third.starts, third.evidence["moves"], third.evidence["balanced"]) == (at(30), 2, 2)


def test_topics_are_created_deleted_made_anew_and_extended() -> None:
    created = {"orders": ORDERS, "new": topic(partition(1, [1]), topic_id="new")}
    anew = {"orders": ObservedTopic("another", ORDERS.partitions)}
    longer = {"orders": topic(*ORDERS.partitions.values(), partition(1, [1, 2]))}
    assert kinds(follow(look(15, topics=created), look(30))) == [
        ChangeKind.TOPIC_CREATED,
        ChangeKind.TOPIC_DELETED,
    ]
    assert kinds(follow(look(15, topics=anew))) == [ChangeKind.TOPIC_RECREATED]
    change = only(follow(look(15, topics=longer)))
    assert (change.kind, change.before, change.after) == (
        ChangeKind.PARTITIONS_ADDED,
        {"partitions": 3},
        {"partitions": 4},
    )


def test_a_topic_that_may_not_be_described_any_more_is_not_deleted() -> None:
    assert not follow(look(15, topics={}, hidden_topics=frozenset({"orders"})), look(30))


def test_many_changes_of_a_kind_are_one_with_their_number() -> None:
    many = {f"t{number}": topic(partition(1, [1])) for number in range(MAX_CHANGES_OF_KIND + 1)}
    change = only(follow(look(15, topics={**QUIET.topics, **many})))
    assert (change.kind, change.topic, change.after) == (
        ChangeKind.TOPIC_CREATED,
        None,
        {"changes": MAX_CHANGES_OF_KIND + 1},
    )


def test_quotas_acls_features_and_the_quorum() -> None:
    quorum = ObservedQuorum(2, 8, frozenset({1, 2, 4}), {4: "directory"})
    changes = follow(
        look(
            15,
            quotas={"user=alice": {"producer_byte_rate": 1.0}},
            acls=frozenset({"a", "b"}),
            feature_levels={"metadata.version": 30},
            quorum=quorum,
        )
    )
    values = {change.kind: (change.before, change.after) for change in changes}
    assert values == {
        ChangeKind.QUOTA_CHANGED: (None, {"producer_byte_rate": 1.0}),
        ChangeKind.ACLS_CHANGED: ({"bindings": 0}, {"bindings": 2}),
        ChangeKind.FEATURE_LEVEL: ({"metadata.version": 29}, {"metadata.version": 30}),
        ChangeKind.CONTROLLER_MOVED: ({"controller": 1}, {"controller": 2}),
        ChangeKind.QUORUM_CHANGED: (
            {"voters": {"1": None, "2": None, "3": None}},
            {"voters": {"1": None, "2": None, "4": "directory"}},
        ),
    }


def test_an_election_without_a_leader_yet_is_no_move_of_the_controller() -> None:
    electing = QUIET.quorum._replace(leader=-1, leader_epoch=8)
    back = QUIET.quorum._replace(leader_epoch=9)
    assert not follow(look(15, quorum=electing), look(30, quorum=back))
    moved = QUIET.quorum._replace(leader=2, leader_epoch=9)
    assert only(follow(look(15, quorum=electing), look(30, quorum=moved))).after == {"controller": 2}


@given(st.lists(st.sampled_from(["brokers", "topics", "moves", "quorum", "settings", "quotas", "acls"])))
def test_whichever_parts_are_missing_for_a_while_nothing_has_changed(missing: list[str]) -> None:
    looks = [
        look(15 * number, **{name: {} if name == "settings" else None})
        for number, name in enumerate(missing, 1)
    ]
    assert not follow(*looks, look(15 * (len(missing) + 1)))
