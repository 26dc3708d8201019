"""Restarts, replacements and upgrades of brokers, told from what is near to them."""

from dataclasses import replace

import pytest

from fleetgauge_core.metadata import (
    ClusterObservation,
    ConnectionEvent,
    ObservedLogDir,
    ObservedQuorum,
)
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.observed_change import ObservedChange
from tests.unit.operations.changes.looks import (
    BROKERS,
    at,
    broker,
    ended,
    fast_look,
    follow,
    kinds,
    look,
    opened,
    partition,
    topic,
)


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
    assert change.evidence == {"signs": ["connection_ended", "fenced"], "down_s": 5.0, "orderly": True}


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


def orderly(*looks: ClusterObservation | tuple[ClusterObservation, list[ConnectionEvent]]) -> bool | None:
    (restarted,) = (change for change in follow(*looks) if change.kind is ChangeKind.BROKER_RESTARTED)
    answer: bool | None = restarted.evidence["orderly"]
    return answer


@pytest.mark.parametrize(
    ("fenced_s", "is_orderly"),
    [
        # Fenced at the first reading, at 20.5 s: told to stop.
        (20.1, True),
        # The broker that was asked had not heard of it yet.
        (20.8, True),
        # Its session has timed out.
        (27, False),
    ],
)
def test_a_broker_that_is_fenced_before_its_session_can_time_out_was_told_to_stop(
    fenced_s: float, is_orderly: bool
) -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    readings = [fast_look(at_s, fenced if at_s >= fenced_s else BROKERS) for at_s in (20.5, 21.5, 22.5, 28)]
    back = (fast_look(36, BROKERS), [opened(35, 2)])
    assert orderly((readings[0], [ended(20, 2)]), *readings[1:], back, look(37)) is is_orderly


def test_whether_a_broker_was_told_to_stop_is_unknown_if_nobody_looked_or_it_was_fenced_before() -> None:
    fenced = BROKERS | {2: broker(2, fenced=True)}
    back = (fast_look(36, BROKERS), [opened(35, 2)])
    assert orderly((fast_look(25, fenced), [ended(20, 2)]), back, look(37)) is None
    assert orderly(look(15, brokers=fenced), (fast_look(21, fenced), [ended(20, 2)]), back, look(37)) is None


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
    first = look(15, quorum=ObservedQuorum(1, 7, frozenset({1, 2, 3}), {2: "old"}))
    back = look(31, quorum=first.quorum)
    changes = follow(
        first,
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
