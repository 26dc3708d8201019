"""Reassignments of partitions, from their begin to their end."""

from fleetgauge_core.metadata import (
    ObservedTopic,
)
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from tests.unit.operations.changes.looks import (
    BROKERS,
    ORDERS,
    P0,
    at,
    broker,
    follow,
    kinds,
    look,
    move,
    only,
    partition,
)


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
