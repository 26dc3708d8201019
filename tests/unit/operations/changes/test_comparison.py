"""The comparison of looks at a cluster: each kind of change with its values, and what is no change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import (
    ClusterObservation,
    ObservedBroker,
    ObservedLogDir,
    ObservedQuorum,
    ObservedTopic,
    SettingOrigin,
    TopicPartition,
)
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from fleetgauge_operations.changes.plan.observed_change import MAX_CHANGES_OF_KIND, ObservedChange
from tests.unit.operations.changes.looks import (
    ALL,
    BROKER_1,
    QUIET,
    TOPIC,
    at,
    broker,
    ended,
    fast_look,
    follow,
    inherited,
    look,
    move,
    opened,
    partition,
    setting,
    topic,
    with_setting,
)

ORDERS = QUIET.topics["orders"]
BROKERS = QUIET.brokers
P0 = TopicPartition("orders", 0)


def kinds(changes: list[ObservedChange]) -> list[ChangeKind]:
    return [change.kind for change in changes]


def only(changes: list[ObservedChange]) -> ObservedChange:
    assert len(changes) == 1, kinds(changes)
    return changes[0]


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


def restart(seconds: float = 20, number: int = 2) -> list[ObservedChange]:
    """Follow an orderly restart of a broker: it is fenced from when it ends until it has caught up."""
    fenced = BROKERS | {number: broker(number, fenced=True)}
    return follow(
        (fast_look(seconds + 1, fenced), [ended(seconds, number)]),
        (fast_look(seconds + 6, BROKERS), [opened(seconds + 5, number)]),
        look(seconds + 7),
    )


def test_a_restart_is_an_ended_connection_and_a_fenced_broker() -> None:
    changes = restart()
    assert kinds(changes) == [
        ChangeKind.BROKER_FENCED,
        ChangeKind.BROKER_UNFENCED,
        ChangeKind.BROKER_RESTARTED,
    ]
    change = changes[-1]
    assert (change.starts, change.ends, change.broker_id) == (at(20), at(25), 2)
    assert change.evidence == {"signs": ["connection_ended", "fenced"], "down_s": 5.0}


def test_a_restart_that_nobody_saw_fenced_shows_by_the_epoch_of_what_it_leads() -> None:
    alone = {"orders": topic(partition(1, [1, 2]), partition(2, [2, 3], epoch=3), partition(3, [3, 1]))}
    changes = follow((look(40, topics=alone), [ended(20, 2), opened(25, 2)]))
    assert kinds(changes) == [ChangeKind.BROKER_RESTARTED]
    assert changes[0].evidence["signs"] == ["connection_ended", "leader_epoch"]


@pytest.mark.parametrize(
    "looks",
    [
        # The connection alone: a load balancer, or a network that resets connections.
        [(look(30), [ended(20, 2), opened(21, 2)]), look(60), look(90)],
        # The controller alone: a network that is cut, while the process runs.
        [look(15, brokers=BROKERS | {2: broker(2, fenced=True)}), look(30)],
        # Both, but minutes apart.
        [
            (look(30), [ended(20, 2), opened(21, 2)]),
            look(60),
            look(90),
            look(120, brokers=BROKERS | {2: broker(2, fenced=True)}),
            look(135),
        ],
    ],
)
def test_one_sign_is_no_restart(looks: list[ClusterObservation]) -> None:
    assert ChangeKind.BROKER_RESTARTED not in kinds(follow(*looks))


def test_a_broker_that_hung_and_was_fenced_before_it_was_killed_has_restarted() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    changes = follow(
        look(15, brokers=fenced),
        look(30, brokers=fenced),
        (fast_look(600, BROKERS), [ended(40, 2), opened(590, 2)]),
        look(601),
    )
    assert kinds(changes)[-1] is ChangeKind.BROKER_RESTARTED


def test_a_connection_that_is_open_again_at_once_is_no_restart() -> None:
    left = {"orders": topic(partition(1, [1, 2], [1]), partition(2, [2, 3]), partition(3, [3, 1]))}
    changes = follow((look(30, topics=left), [ended(20, 2), opened(20.2, 2)]), look(45))
    assert ChangeKind.BROKER_RESTARTED not in kinds(changes)


def test_a_restart_shows_by_leaderships_that_failed_over() -> None:
    led = {"orders": topic(partition(1, [1, 2]), partition(3, [2, 3], epoch=2), partition(3, [3, 1]))}
    changes = follow((look(40, topics=led), [ended(20, 2), opened(25, 2)]))
    (restarted,) = (change for change in changes if change.kind is ChangeKind.BROKER_RESTARTED)
    assert restarted.evidence["signs"] == ["connection_ended", "leadership_failed_over"]


def test_an_older_kafka_lists_no_broker_that_is_down_and_its_restart_is_one_all_the_same() -> None:
    live = {number: BROKERS[number] for number in (1, 3)}
    changes = follow(
        (replace(fast_look(21, live), lists_fenced=False), [ended(20, 2)]),
        (replace(fast_look(26, BROKERS), lists_fenced=False), [opened(25, 2)]),
        look(27, lists_fenced=False),
    )
    assert kinds(changes) == [
        ChangeKind.BROKER_FENCED,
        ChangeKind.BROKER_UNFENCED,
        ChangeKind.BROKER_RESTARTED,
    ]


def test_an_outage_of_a_cluster_does_not_last_into_the_one_that_takes_its_place() -> None:
    changes = follow(
        (fast_look(21, BROKERS), [ended(20, 2)]),
        (look(40, kafka_cluster_uuid="another"), [opened(30, 2)]),
        look(55, kafka_cluster_uuid="another"),
    )
    assert not changes


def test_five_restarts_are_five() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    looks = []
    for number in range(5):
        start = 100 * number + 10
        looks += [
            (fast_look(start + 1, fenced), [ended(start, 2)]),
            (fast_look(start + 6, BROKERS), [opened(start + 5, 2)]),
            look(start + 7),
        ]
    assert kinds(follow(*looks)).count(ChangeKind.BROKER_RESTARTED) == 5


@pytest.mark.parametrize(
    ("parts", "before", "after"),
    [
        ({"stored_bytes": {2: 0}}, {"stored_bytes": 10_000_000}, {"stored_bytes": 0}),
        (
            {"log_dirs": {2: {"/new": ObservedLogDir(False, False)}}},
            {"log_dirs": ["/data"]},
            {"log_dirs": ["/new"]},
        ),
        (
            {"quorum": ObservedQuorum(1, 7, frozenset({1, 2, 3}), {2: "new"})},
            {"directory_id": "old"},
            {"directory_id": "new"},
        ),
    ],
)
def test_a_broker_that_comes_back_empty_or_with_another_directory_is_replaced(
    parts: dict[str, object], before: object, after: object
) -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    known = look(15, quorum=ObservedQuorum(1, 7, frozenset({1, 2, 3}), {2: "old"}))
    back = look(31, quorum=known.quorum)
    changes = follow(
        known,
        (fast_look(21, fenced), [ended(20, 2)]),
        (fast_look(30, BROKERS), [opened(29, 2)]),
        replace(back, **parts),
    )
    (replaced,) = (change for change in changes if change.kind is ChangeKind.BROKER_REPLACED)
    assert (replaced.before, replaced.after, replaced.broker_id) == (before, after, 2)


def test_a_broker_that_comes_back_with_its_data_is_not_replaced() -> None:
    assert ChangeKind.BROKER_REPLACED not in kinds(restart())


def test_a_broker_that_was_emptied_before_its_restart_is_not_replaced() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    drained = {"orders": topic(partition(1, [1, 3]), partition(3, [1, 3]), partition(3, [3, 1]))}
    changes = follow(
        (fast_look(21, fenced), [ended(20, 2)]),
        (fast_look(30, BROKERS), [opened(29, 2)]),
        look(31, topics=drained, stored_bytes={2: 0}),
    )
    assert ChangeKind.BROKER_REPLACED not in kinds(changes)


def test_an_upgrade_is_another_version_at_the_next_connection() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    changes = follow(
        (look(15), [opened(1, 2, (4, 1))]),
        (fast_look(21, fenced), [ended(20, 2)]),
        (look(31), [opened(30, 2, (4, 3))]),
    )
    (change,) = (change for change in changes if change.kind is ChangeKind.BROKER_VERSION)
    assert (change.before, change.after) == ({"version": "4.1"}, {"version": "4.3"})
    assert (change.starts, change.ends) == (at(20), at(30))


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


def moving(number: int, replicas: list[int]) -> dict[str, ObservedTopic]:
    """Return the quiet topic with other replicas of a partition; its leader stays."""
    earlier = ORDERS.partitions[number]
    partitions = {**ORDERS.partitions, number: partition(earlier.leader, replicas, earlier.in_sync)}
    return {"orders": ObservedTopic("id", partitions)}


def test_a_reassignment_lasts_until_its_last_partition_has_its_replicas() -> None:
    changes = follow(
        look(15, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2]), moved_bytes={P0: 100}),
        look(30, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2]), moved_bytes={P0: 200}),
        look(90, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2]), moved_bytes={P0: 900}),
        look(105, topics=moving(0, [1, 3])),
    )
    assert [(change.kind, change.phase) for change in changes] == [
        (ChangeKind.REASSIGNMENT, ChangePhase.BEGUN),
        (ChangeKind.REASSIGNMENT, ChangePhase.PROGRESS),
        (ChangeKind.REASSIGNMENT, ChangePhase.ENDED),
    ]
    begun, progress, end = changes
    assert (begun.before, begun.after) == ({"orders-0": [1, 2]}, {"orders-0": [1, 3]})
    assert (begun.evidence["brokers"], begun.evidence["moved_bytes"]) == ([2, 3], 100)
    assert (progress.evidence["moved_bytes"], progress.evidence["remaining"]) == (900, 1)
    assert (end.starts, end.ends, end.after) == (at(0), at(105), {"orders-0": [1, 3]})
    assert (end.evidence["outcomes"], end.evidence["moved_bytes"]) == ({"done": 1}, 900)


def test_what_is_reassigned_is_read_after_the_partitions_and_may_be_ahead_of_them() -> None:
    # It begins between the two readings, and another one ends between them.
    changes = follow(
        look(15, moves=move(0, [3], [2])),
        look(30, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2])),
        look(45, topics=moving(0, [1, 3, 2])),
        look(60, topics=moving(0, [1, 3])),
    )
    assert [(change.phase, change.after) for change in changes] == [
        (ChangePhase.BEGUN, {"orders-0": [1, 3]}),
        (ChangePhase.ENDED, {"orders-0": [1, 3]}),
    ]
    assert changes[-1].evidence["outcomes"] == {"done": 1}


def test_without_what_is_reassigned_replicas_are_not_compared() -> None:
    changes = follow(
        look(15, topics=moving(0, [1, 3, 2]), moves=None), look(30, topics=moving(0, [1, 3, 2]), moves=None)
    )
    assert not changes


def test_replicas_that_are_only_added_or_removed_end_with_another_replication_factor() -> None:
    for replicas, adding, removing in (([1, 2, 3], [3], []), ([1], [], [2])):
        changes = follow(
            look(15, topics=moving(0, [1, 2, *adding]), moves=move(0, adding, removing)),
            look(30, topics=moving(0, replicas)),
            look(45, topics=moving(0, replicas)),
        )
        assert [(change.kind, change.phase) for change in changes] == [
            (ChangeKind.REASSIGNMENT, ChangePhase.BEGUN),
            (ChangeKind.REASSIGNMENT, ChangePhase.ENDED),
            (ChangeKind.REPLICATION_FACTOR, ChangePhase.HAPPENED),
        ]


def test_a_partition_that_shows_no_end_is_waited_for_once() -> None:
    stuck = moving(0, [1, 3, 2])
    changes = follow(
        look(15, topics=stuck, moves=move(0, [3], [2])), look(30, topics=stuck), look(45, topics=stuck)
    )
    moves = [change for change in changes if change.kind is ChangeKind.REASSIGNMENT]
    assert [change.phase for change in moves] == [ChangePhase.BEGUN, ChangePhase.ENDED]
    assert moves[-1].evidence["outcomes"] == {"changed": 1}


def test_a_cancelled_reassignment_ends_with_the_replicas_of_before_in_any_order() -> None:
    changes = follow(
        look(15, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2])), look(30, topics=moving(0, [2, 1]))
    )
    end = changes[1]
    assert (end.phase, end.before, end.after) == (
        ChangePhase.CANCELLED,
        {"orders-0": [1, 2]},
        {"orders-0": [2, 1]},
    )


def test_a_reassignment_that_runs_at_the_first_look_is_found_at_its_end() -> None:
    history, changes = compare(
        ObservedHistory(), look(0, topics=moving(0, [1, 3, 2]), moves=move(0, [3], [2]))
    )
    assert not changes
    _, changes = compare(history, look(15, topics=moving(0, [1, 3])))
    assert only(list(changes)).phase is ChangePhase.ENDED


def test_a_partition_that_moves_is_not_under_replicated() -> None:
    moved = moving(0, [1, 3, 2])
    change = only(
        follow(
            look(15, topics=moved, moves=move(0, [3], [2])), look(30, topics=moved, moves=move(0, [3], [2]))
        )
    )
    assert change.kind is ChangeKind.REASSIGNMENT
    fenced = BROKERS | {3: broker(3, fenced=True)}
    changes = follow(look(15, topics=moved, moves=move(0, [3], [2]), brokers=fenced))
    assert changes[0].evidence == {"under_replicated_partitions": 0}


def test_another_replication_factor_is_found_with_the_reassignment() -> None:
    changes = follow(look(15, topics=moving(0, [1, 2, 3])))
    assert kinds(changes) == [ChangeKind.REASSIGNMENT, ChangeKind.REPLICATION_FACTOR]
    assert (changes[1].before, changes[1].after) == (
        {"replication_factor": [2]},
        {"replication_factor": [3]},
    )


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


def test_settings_change_at_their_owner_alone() -> None:
    own = look(15, settings=with_setting(TOPIC, retention__ms=setting("1000")))
    change = only(follow(own))
    assert (change.kind, change.topic) == (ChangeKind.SETTING_CHANGED, "orders")
    assert (change.before, change.after) == ({"retention.ms": None}, {"retention.ms": "1000"})
    shared = {
        **with_setting(ALL, **{"log__retention__ms": setting("5")}),
        TOPIC: {**QUIET.settings[TOPIC], "retention.ms": inherited("5")},
        BROKER_1: {
            **QUIET.settings[BROKER_1],
            "log.retention.ms": setting("5", SettingOrigin.ALL_BROKERS),
        },
    }
    change = only(follow(look(15, settings=shared)))
    assert (change.broker_id, change.topic, change.after) == (None, None, {"log.retention.ms": "5"})


@pytest.mark.parametrize(
    "settings",
    [
        # Set to the value that it inherits.
        with_setting(TOPIC, cleanup__policy=setting("delete")),
        # Sensitive: it reads as null, whatever it is.
        with_setting(BROKER_1, ssl__keystore__password=setting("x", sensitive=True)),
        # Inherited from another broker that was asked.
        with_setting(TOPIC, retention__ms=inherited("1")),
        # A topic that was deleted takes its settings with it.
        {owner: values for owner, values in QUIET.settings.items() if owner != TOPIC},
    ],
)
def test_what_is_no_change_of_a_setting(settings: dict[object, object]) -> None:
    assert not follow(look(15, settings=settings))


def test_the_settings_of_a_topic_are_compared_only_with_what_the_same_broker_said_before() -> None:
    settings = with_setting(TOPIC, retention__ms=setting("1000"))
    assert not follow(
        look(15, settings=settings, asked_broker=2), look(30, settings=settings, asked_broker=2)
    )
    # A broker that has restarted may bring back the settings of a deleted topic.
    assert ChangeKind.SETTING_CHANGED not in kinds(
        follow((look(15, settings=settings), [ended(5, 1), opened(10, 1)]), look(30, settings=settings))
    )


def test_a_throttle_of_a_topic_that_is_cleared_while_another_broker_is_asked_ends() -> None:
    throttled = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("*")})
    changes = follow(look(15, settings=throttled), look(30, asked_broker=2))
    assert [(change.kind, change.phase) for change in changes] == [
        (ChangeKind.THROTTLE, ChangePhase.BEGUN),
        (ChangeKind.THROTTLE, ChangePhase.ENDED),
    ]


def test_another_properties_file_is_a_change_of_its_broker() -> None:
    change = only(
        follow(look(15, settings=with_setting(BROKER_1, log__retention__ms=setting("1", SettingOrigin.FILE))))
    )
    assert (change.broker_id, change.before, change.after) == (
        1,
        {"log.retention.ms": "604800000"},
        {"log.retention.ms": "1"},
    )


RATE = "leader__replication__throttled__rate"


def throttle(value: str | None) -> dict[object, object]:
    return with_setting(BROKER_1, **{RATE: setting(value) if value else inherited("9223372036854775807")})


def test_a_throttle_lasts_from_when_it_is_set_until_it_is_cleared() -> None:
    changes = follow(
        look(15, settings=throttle("10")),
        look(30, settings=throttle("20")),
        look(45, settings=throttle(None)),
    )
    assert [(change.kind, change.phase, change.starts) for change in changes] == [
        (ChangeKind.THROTTLE, ChangePhase.BEGUN, at(0)),
        (ChangeKind.THROTTLE, ChangePhase.PROGRESS, at(0)),
        (ChangeKind.THROTTLE, ChangePhase.ENDED, at(0)),
    ]
    assert [list(change.after.values()) for change in changes] == [["10"], ["20"], [None]]
    assert changes[-1].ends == at(45)


def test_a_throttle_that_was_set_at_the_first_look_is_found_when_it_is_cleared() -> None:
    history, changes = compare(ObservedHistory(), look(0, settings=throttle("10")))
    assert not changes
    _, changes = compare(history, look(15, settings=throttle(None)))
    assert only(list(changes)).phase is ChangePhase.ENDED


def test_two_tools_that_undo_each_other_fight() -> None:
    values = ["10", None, "10", None, "10"]
    changes = follow(*(look(15 * (n + 1), settings=throttle(value)) for n, value in enumerate(values)))
    fights = [change for change in changes if change.kind is ChangeKind.THROTTLE_FIGHT]
    assert len(fights) == 1
    assert fights[0].evidence["values"] == values


def test_a_tool_that_moves_two_batches_does_not_fight() -> None:
    values = ["10", None, "10", None]
    changes = follow(*(look(60 * (n + 1), settings=throttle(value)) for n, value in enumerate(values)))
    assert ChangeKind.THROTTLE_FIGHT not in kinds(changes)


@pytest.mark.parametrize("value", ["9223372036854775807"])
def test_a_throttle_that_limits_nothing_is_none(value: str) -> None:
    assert not follow(look(15, settings=throttle(value)), look(30, settings=throttle(None)))
    listed = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("")})
    assert not follow(look(15, settings=listed), look(30))


def test_a_throttle_ends_with_its_topic() -> None:
    throttled = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("*")})
    deleted = {owner: values for owner, values in throttled.items() if owner != TOPIC}
    changes = follow(look(15, settings=throttled), look(30, topics={}, settings=deleted))
    ends = [change for change in changes if change.phase is ChangePhase.ENDED]
    assert [(change.kind, change.topic, change.evidence["gone"]) for change in ends] == [
        (ChangeKind.THROTTLE, "orders", True)
    ]


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
