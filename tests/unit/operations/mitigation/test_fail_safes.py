"""Each fail-safe refuses by itself, in a situation where nothing else forbids anything."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.mitigation.case import (
    Action,
    ActionRequest,
    CaseOutcome,
    MitigationCase,
    ReplicaOrder,
)
from fleetgauge_operations.mitigation.demotion import plan_restoration
from fleetgauge_operations.mitigation.fail_safes import RefusalReason, find_refusals, find_undo_refusals
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, ClusterSnapshot
from tests.unit.operations.mitigation.simulated_cluster import (
    LONG_AGO,
    NOON,
    broker,
    cluster_metadata,
    degraded,
    partition,
)

INTENT = ActionRequest(Action.DEMOTE, "orders", 2)
QUARANTINE = ActionRequest(Action.QUARANTINE_RESTART, "orders", 2)
RESTART = ActionRequest(Action.RESTART, "orders", 2)
FINE = ClusterSnapshot(cluster_metadata(), (degraded(2),))


def case(
    broker_id: int, outcome: CaseOutcome, minutes_ago: float = 60 * 48, zone: str | None = None
) -> MitigationCase:
    began = NOON - timedelta(minutes=minutes_ago)
    zone = zone or f"zone-{broker_id}"
    return MitigationCase("c1", Action.DEMOTE, "orders", broker_id, zone, "ann", "DEGRADED", began, outcome)


def why(situation: ClusterSnapshot, intent: ActionRequest = INTENT) -> list[RefusalReason]:
    return [refusal.reason for refusal in find_refusals(intent, situation, NOON)]


def test_a_degraded_broker_of_a_well_cluster_may_be_demoted() -> None:
    assert find_refusals(INTENT, FINE, NOON) == ()


OTHERS = cluster_metadata((broker(1), broker(2), broker(3, fenced=True)))
FENCED = cluster_metadata((broker(1), broker(2, fenced=True), broker(3)))
ALONE = cluster_metadata(partitions={TopicPartition("single", 0): partition(2)})
LAST = cluster_metadata(partitions={TopicPartition("t", 0): partition(1, 3, 2)})
SHORT = cluster_metadata(partitions={TopicPartition("t", 0): partition(1, 2, 3, out=(3,))})
NOBODY_ELSE = cluster_metadata(partitions={TopicPartition("t", 0): partition(2, 1, out=(1,))})
MOVING = cluster_metadata(reassigning=[TopicPartition("t", 1)])
UNDONE_TODAY = tuple(case(1, CaseOutcome.UNDONE, ago) for ago in (20, 60, 23 * 60))


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (replace(FINE, metadata=cluster_metadata((broker(1), broker(3)))), RefusalReason.NOT_REGISTERED),
        (replace(FINE, metadata=FENCED), RefusalReason.FENCED),
        (replace(FINE, metadata=LAST), RefusalReason.NOTHING_TO_TAKE),
        (replace(FINE, alerts=()), RefusalReason.NO_FINDING),
        (
            replace(FINE, alerts=(ActiveAlert(2, HealthState.BROKER_DOWN, LONG_AGO),)),
            RefusalReason.NO_FINDING,
        ),
        (replace(FINE, alerts=(degraded(2, NOON - timedelta(seconds=74)),)), RefusalReason.TOO_YOUNG),
        (
            replace(FINE, alerts=(degraded(2), ActiveAlert(None, HealthState.NO_DATA, LONG_AGO))),
            RefusalReason.NOT_MEASURED,
        ),
        (replace(FINE, is_watched=False), RefusalReason.NO_WATCH),
        (replace(FINE, alerts=(degraded(2), degraded(3))), RefusalReason.SECOND_SICK),
        (replace(FINE, metadata=OTHERS), RefusalReason.OTHER_FENCED),
        (replace(FINE, metadata=SHORT), RefusalReason.MIN_IN_SYNC),
        (replace(FINE, metadata=MOVING), RefusalReason.MOVING),
        (replace(FINE, is_rolling=True), RefusalReason.ROLLING),
        (replace(FINE, planned_broker_ids={2}), RefusalReason.PLANNED),
        (replace(FINE, planned_broker_ids={None}), RefusalReason.PLANNED),
        (replace(FINE, cases=(case(2, CaseOutcome.DONE),)), RefusalReason.ALREADY),
        (replace(FINE, cases=(case(3, CaseOutcome.DONE, zone="zone-2"),)), RefusalReason.OTHER_BROKER),
        (replace(FINE, cases=(case(3, CaseOutcome.DONE),)), RefusalReason.OTHER_ZONE),
        (replace(FINE, cases=(case(1, CaseOutcome.UNDONE, 9),)), RefusalReason.TOO_SOON),
        (replace(FINE, cases=UNDONE_TODAY), RefusalReason.TOO_MANY),
        (replace(FINE, modes={"demote": "off"}), RefusalReason.OFF),
    ],
)
def test_each_refuses_by_itself(situation: ClusterSnapshot, expected: RefusalReason) -> None:
    assert why(situation) == [expected]


def test_who_is_demoted_already_may_be_kept_out_of_sync_if_somebody_has_said_how_to_restart_it() -> None:
    could = replace(FINE, has_restart_command=True, cases=(case(2, CaseOutcome.DONE),))
    assert why(could, QUARANTINE) == []
    assert why(replace(could, has_restart_command=False), QUARANTINE) == [RefusalReason.NO_RESTART]
    assert why(replace(could, cases=(case(3, CaseOutcome.DONE),)), QUARANTINE) == [RefusalReason.OTHER_ZONE]
    cut_off = ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, LONG_AGO)
    assert why(replace(could, alerts=(cut_off,)), QUARANTINE) == [RefusalReason.NO_FINDING]


DOWN = ActiveAlert(2, HealthState.BROKER_DOWN, LONG_AGO)


def test_who_is_down_may_be_restarted_though_it_is_fenced_and_nobody_else_has_what_it_has() -> None:
    down = replace(FINE, alerts=(DOWN,), has_restart_command=True, metadata=FENCED)
    assert why(down, RESTART) == []
    alone = cluster_metadata(FENCED.brokers.values(), {TopicPartition("single", 0): partition(2)})
    assert why(replace(down, metadata=alone), RESTART) == []
    young = replace(DOWN, since=NOON - timedelta(seconds=119))
    assert why(replace(down, alerts=(young,)), RESTART) == [RefusalReason.TOO_YOUNG]
    just_now = replace(DOWN, state_since=NOON - timedelta(seconds=6))
    assert why(replace(down, alerts=(just_now,)), RESTART) == [RefusalReason.TOO_YOUNG]
    assert why(replace(down, has_restart_command=False), RESTART) == [RefusalReason.NO_RESTART]
    assert why(replace(FINE, has_restart_command=True), RESTART) == [RefusalReason.NO_FINDING]


def test_two_restarts_within_half_an_hour_are_enough() -> None:
    down = replace(FINE, alerts=(DOWN,), has_restart_command=True, metadata=FENCED)
    restarts = tuple(replace(case(3, CaseOutcome.DONE, ago), action=Action.RESTART) for ago in (29, 11))
    assert why(replace(down, cases=restarts), RESTART) == [RefusalReason.TOO_MANY]
    assert why(replace(down, cases=restarts[1:]), RESTART) == []


def test_what_is_proposed_is_never_done() -> None:
    assert why(FINE, ActionRequest(Action.EVACUATE, "orders", 2)) == [RefusalReason.PROPOSED_ONLY]


def test_what_somebody_else_slows_is_not_slowed_again() -> None:
    theirs = replace(cluster_metadata(), throttled_topics=frozenset({"t"}))
    assert why(replace(FINE, has_restart_command=True, metadata=theirs), QUARANTINE) == [
        RefusalReason.THROTTLED
    ]
    assert why(replace(FINE, metadata=theirs)) == []


def test_who_alone_has_a_partition_or_is_alone_in_sync_keeps_it() -> None:
    for alone in (ALONE, NOBODY_ELSE):
        assert why(replace(FINE, metadata=alone)) == [RefusalReason.ONLY_REPLICA, RefusalReason.MIN_IN_SYNC]


def test_what_failed_stands_in_the_way_of_all_else_until_it_is_undone() -> None:
    assert why(replace(FINE, cases=(case(3, CaseOutcome.FAILED),))) == [
        RefusalReason.OTHER_ZONE,
        RefusalReason.CIRCUIT_OPEN,
    ]
    assert why(replace(FINE, cases=(case(3, CaseOutcome.BEGUN),))) == [
        RefusalReason.OTHER_ZONE,
        RefusalReason.CIRCUIT_OPEN,
    ]
    assert why(replace(FINE, cases=(case(3, CaseOutcome.UNDONE),))) == []


def test_what_was_refused_or_is_long_ago_counts_for_nothing() -> None:
    refused = tuple(case(1, CaseOutcome.REFUSED, ago) for ago in (1, 2, 3))
    long_ago = tuple(case(1, CaseOutcome.UNDONE, 24 * 60 + ago) for ago in (0, 1, 2))
    assert why(replace(FINE, cases=refused + long_ago)) == []


def test_a_person_may_do_it_for_a_reason_of_their_own_but_past_no_fail_safe() -> None:
    mine = replace(INTENT, reason="its disk is to be changed")
    assert why(replace(FINE, alerts=()), mine) == []
    assert why(replace(FINE, alerts=(), is_watched=False, planned_broker_ids={2}), mine) == []
    assert why(replace(FINE, planned_broker_ids={3})) == []
    assert why(replace(FINE, alerts=(), metadata=SHORT), mine) == [RefusalReason.MIN_IN_SYNC]


def test_a_cut_off_broker_is_acted_upon_after_half_a_minute() -> None:
    for age_s, expected in ((29, [RefusalReason.TOO_YOUNG]), (30, [])):
        cut_off = ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, NOON - timedelta(seconds=age_s))
        assert why(replace(FINE, alerts=(cut_off,))) == expected


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (replace(FINE, alerts=()), []),
        (FINE, [RefusalReason.STILL_SICK]),
        (replace(FINE, alerts=(), metadata=FENCED), [RefusalReason.FENCED]),
        (replace(FINE, alerts=(), metadata=MOVING), [RefusalReason.MOVING]),
        (
            replace(FINE, alerts=(), metadata=cluster_metadata((broker(1), broker(3)))),
            [RefusalReason.NOT_REGISTERED],
        ),
    ],
)
def test_undoing_has_fail_safes_of_its_own(situation: ClusterSnapshot, expected: list[RefusalReason]) -> None:
    done = replace(
        case(2, CaseOutcome.DONE), orders={TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2))}
    )
    back = plan_restoration(situation.metadata, done.orders)
    assert [refusal.reason for refusal in find_undo_refusals(done, back, situation, None)] == expected


def test_a_case_of_a_broker_that_is_gone_is_closed_for_a_reason() -> None:
    done = replace(
        case(2, CaseOutcome.DONE), orders={TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2))}
    )
    gone = replace(FINE, alerts=(), metadata=cluster_metadata((broker(1), broker(3))))
    assert find_undo_refusals(done, plan_restoration(gone.metadata, done.orders), gone, "replaced by 4") == ()


def test_who_is_behind_is_not_given_its_lead_back() -> None:
    """Behind in what it is to lead; for who is on duty, behind anywhere."""
    done = replace(
        case(2, CaseOutcome.DONE), orders={TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2))}
    )
    for place, persons_too in ((TopicPartition("t", 1), True), (TopicPartition("followed", 0), False)):
        led = {TopicPartition("t", 1): partition(3, 1, 2), TopicPartition("followed", 0): partition(3, 1, 2)}
        behind = cluster_metadata(partitions=led | {place: partition(3, 1, 2, out=(2,))})
        situation, back = replace(FINE, alerts=(), metadata=behind), plan_restoration(behind, done.orders)
        (refused,) = find_undo_refusals(done, back, situation, None)
        assert refused.reason is RefusalReason.NOT_IN_SYNC
        assert f"{place.topic}-{place.partition}" in refused.explanation
        assert bool(find_undo_refusals(done, back, situation, "now")) is persons_too
