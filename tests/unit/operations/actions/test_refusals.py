"""Each fail-safe refuses by itself, in a snapshot to which no other fail-safe objects."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import RefusalReason
from fleetgauge_operations.actions.plan.refusals import find_refusals, find_undo_refusals
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder, encode_orders
from fleetgauge_operations.mitigation.plan.rules import build_rules
from tests.unit.operations.mitigation.simulated_cluster import (
    HOUR_AGO,
    NOON,
    build_broker,
    build_metadata,
    build_partition,
    degraded_alert,
)

RULES = build_rules()
DEMOTION = ActionRequest(ActionKind.DEMOTE, "orders", 2)
QUARANTINE = ActionRequest(ActionKind.QUARANTINE_RESTART, "orders", 2)
RESTART = ActionRequest(ActionKind.RESTART, "orders", 2)
#: Broker 2 is DEGRADED, and nothing forbids to demote it.
DEGRADED = ClusterSnapshot(build_metadata(), (degraded_alert(2),))
DOWN_ALERT = ActiveAlert(2, HealthState.BROKER_DOWN, HOUR_AGO)


def build_case(
    broker_id: int, outcome: ActionOutcome, minutes_ago: float = 60 * 48, zone: str | None = None
) -> ActionCase:
    began = NOON - timedelta(minutes=minutes_ago)
    zone = zone or f"zone-{broker_id}"
    return ActionCase("c1", ActionKind.DEMOTE, "orders", broker_id, zone, "ann", "DEGRADED", began, outcome)


#: The demotion of broker 2, which is to lead t-1 after the undo.
DEMOTED = replace(
    build_case(2, ActionOutcome.DONE),
    plan=encode_orders({TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2))}),
)


def refusal_reasons(snapshot: ClusterSnapshot, request: ActionRequest = DEMOTION) -> list[RefusalReason]:
    return [refusal.reason for refusal in find_refusals(request, snapshot, NOON, RULES[request.kind])]


def test_a_degraded_broker_of_a_healthy_cluster_may_be_demoted() -> None:
    assert find_refusals(DEMOTION, DEGRADED, NOON, RULES[DEMOTION.kind]) == ()


WITHOUT_BROKER_2 = build_metadata((build_broker(1), build_broker(3)))
BROKER_2_FENCED = build_metadata((build_broker(1), build_broker(2, fenced=True), build_broker(3)))
BROKER_3_FENCED = build_metadata((build_broker(1), build_broker(2), build_broker(3, fenced=True)))
SINGLE_REPLICA = build_metadata(partitions={TopicPartition("single", 0): build_partition(2)})
NO_OTHER_IN_SYNC = build_metadata(
    partitions={TopicPartition("t", 0): build_partition(2, 1, out_of_sync=(1,))}
)
BROKER_2_LAST = build_metadata(partitions={TopicPartition("t", 0): build_partition(1, 3, 2)})
TWO_IN_SYNC = build_metadata(partitions={TopicPartition("t", 0): build_partition(1, 2, 3, out_of_sync=(3,))})
REASSIGNING = build_metadata(reassigning=[TopicPartition("t", 1)])
THREE_ACTIONS_TODAY = tuple(build_case(1, ActionOutcome.UNDONE, minutes) for minutes in (20, 60, 23 * 60))


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (replace(DEGRADED, metadata=WITHOUT_BROKER_2), RefusalReason.NOT_REGISTERED),
        (replace(DEGRADED, metadata=BROKER_2_FENCED), RefusalReason.FENCED),
        (replace(DEGRADED, metadata=BROKER_2_LAST), RefusalReason.NOTHING_TO_TAKE),
        (replace(DEGRADED, alerts=()), RefusalReason.NO_FINDING),
        (replace(DEGRADED, alerts=(DOWN_ALERT,)), RefusalReason.NO_FINDING),
        (
            replace(DEGRADED, alerts=(degraded_alert(2, NOON - timedelta(seconds=74)),)),
            RefusalReason.TOO_YOUNG,
        ),
        (
            replace(DEGRADED, alerts=(degraded_alert(2), ActiveAlert(None, HealthState.NO_DATA, HOUR_AGO))),
            RefusalReason.NOT_MEASURED,
        ),
        (replace(DEGRADED, is_watched=False), RefusalReason.NO_WATCH),
        (replace(DEGRADED, alerts=(degraded_alert(2), degraded_alert(3))), RefusalReason.SECOND_SICK),
        (replace(DEGRADED, metadata=BROKER_3_FENCED), RefusalReason.OTHER_FENCED),
        (replace(DEGRADED, metadata=SINGLE_REPLICA), RefusalReason.NOTHING_TO_TAKE),
        (replace(DEGRADED, metadata=NO_OTHER_IN_SYNC), RefusalReason.NOTHING_TO_TAKE),
        (replace(DEGRADED, metadata=REASSIGNING), RefusalReason.MOVING),
        (replace(DEGRADED, is_rolling=True), RefusalReason.ROLLING),
        (replace(DEGRADED, planned_broker_ids={2}), RefusalReason.PLANNED),
        (replace(DEGRADED, planned_broker_ids={None}), RefusalReason.PLANNED),
        (replace(DEGRADED, cases=(build_case(2, ActionOutcome.DONE),)), RefusalReason.ALREADY),
        (
            replace(DEGRADED, cases=(build_case(3, ActionOutcome.DONE, zone="zone-2"),)),
            RefusalReason.OTHER_BROKER,
        ),
        (replace(DEGRADED, cases=(build_case(3, ActionOutcome.DONE),)), RefusalReason.OTHER_ZONE),
        (replace(DEGRADED, cases=(build_case(1, ActionOutcome.UNDONE, 9),)), RefusalReason.TOO_SOON),
        (replace(DEGRADED, cases=THREE_ACTIONS_TODAY), RefusalReason.TOO_MANY),
        (replace(DEGRADED, modes={"demote": "off"}), RefusalReason.OFF),
    ],
)
def test_each_fail_safe_refuses_by_itself(snapshot: ClusterSnapshot, reason: RefusalReason) -> None:
    assert refusal_reasons(snapshot) == [reason]


def test_a_demoted_broker_may_be_quarantined_if_there_is_a_restart_command() -> None:
    demoted = replace(DEGRADED, has_restart_command=True, cases=(build_case(2, ActionOutcome.DONE),))
    assert refusal_reasons(demoted, QUARANTINE) == []
    without_command = replace(demoted, has_restart_command=False)
    assert refusal_reasons(without_command, QUARANTINE) == [RefusalReason.NO_RESTART]
    other_demoted = replace(demoted, cases=(build_case(3, ActionOutcome.DONE),))
    assert refusal_reasons(other_demoted, QUARANTINE) == [RefusalReason.OTHER_ZONE]
    cut_off = replace(demoted, alerts=(ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, HOUR_AGO),))
    assert refusal_reasons(cut_off, QUARANTINE) == [RefusalReason.NO_FINDING]


def test_a_broker_that_is_down_may_be_restarted_although_it_is_fenced_or_the_only_replica() -> None:
    down = replace(DEGRADED, alerts=(DOWN_ALERT,), has_restart_command=True, metadata=BROKER_2_FENCED)
    assert refusal_reasons(down, RESTART) == []
    only_replica = build_metadata(
        BROKER_2_FENCED.brokers.values(), {TopicPartition("single", 0): build_partition(2)}
    )
    assert refusal_reasons(replace(down, metadata=only_replica), RESTART) == []
    recent_alert = replace(DOWN_ALERT, since=NOON - timedelta(seconds=119))
    assert refusal_reasons(replace(down, alerts=(recent_alert,)), RESTART) == [RefusalReason.TOO_YOUNG]
    recent_state = replace(DOWN_ALERT, state_since=NOON - timedelta(seconds=6))
    assert refusal_reasons(replace(down, alerts=(recent_state,)), RESTART) == [RefusalReason.TOO_YOUNG]
    assert refusal_reasons(replace(down, has_restart_command=False), RESTART) == [RefusalReason.NO_RESTART]
    degraded = replace(DEGRADED, has_restart_command=True)
    assert refusal_reasons(degraded, RESTART) == [RefusalReason.NO_FINDING]


def test_a_third_restart_within_half_an_hour_is_refused() -> None:
    down = replace(DEGRADED, alerts=(DOWN_ALERT,), has_restart_command=True, metadata=BROKER_2_FENCED)
    restarts = tuple(
        replace(build_case(3, ActionOutcome.DONE, minutes), kind=ActionKind.RESTART, ended=NOON)
        for minutes in (29, 11)
    )
    assert refusal_reasons(replace(down, cases=restarts), RESTART) == [RefusalReason.TOO_MANY]
    assert refusal_reasons(replace(down, cases=restarts[1:]), RESTART) == []


def test_an_evacuation_is_proposed_but_never_applied() -> None:
    evacuation = ActionRequest(ActionKind.EVACUATE, "orders", 2)
    assert refusal_reasons(DEGRADED, evacuation) == [RefusalReason.PROPOSED_ONLY]


def test_a_topic_that_an_operator_has_throttled_prevents_a_quarantine_but_no_demotion() -> None:
    throttled = replace(build_metadata(), throttled_topics=frozenset({"t"}))
    assert refusal_reasons(replace(DEGRADED, has_restart_command=True, metadata=throttled), QUARANTINE) == [
        RefusalReason.THROTTLED
    ]
    assert refusal_reasons(replace(DEGRADED, metadata=throttled)) == []


def test_a_broker_with_the_only_in_sync_replica_of_a_partition_is_not_quarantined() -> None:
    for metadata in (SINGLE_REPLICA, NO_OTHER_IN_SYNC):
        snapshot = replace(DEGRADED, metadata=metadata, has_restart_command=True)
        assert refusal_reasons(snapshot, QUARANTINE) == [
            RefusalReason.ONLY_REPLICA,
            RefusalReason.MIN_IN_SYNC,
        ]


def test_a_partition_that_only_the_broker_can_lead_does_not_keep_it_from_being_demoted() -> None:
    """A demoted broker stays in sync, so min.insync.replicas does not matter either."""
    partitions = {
        **build_metadata().partitions,
        **SINGLE_REPLICA.partitions,
        TopicPartition("under", 0): build_partition(2, 1, 3, out_of_sync=(1, 3)),
        TopicPartition("short", 0): build_partition(2, 1, 3, out_of_sync=(3,)),
    }
    snapshot = replace(DEGRADED, metadata=build_metadata(partitions=partitions))
    assert refusal_reasons(snapshot) == []
    assert RULES[ActionKind.DEMOTE].describe_effect(snapshot.metadata, 2) == (
        "leads 4 of its 6 partitions now; 2 go to other replicas, 2 stay, because no other replica is in "
        "sync: single-0, under-0"
    )


@pytest.mark.parametrize(
    ("moving", "reasons"),
    [(("t", 1), []), (("elsewhere", 0), [RefusalReason.MOVING])],
)
def test_a_move_that_waits_for_a_broker_that_is_down_does_not_forbid_its_restart(
    moving: tuple[str, int], reasons: list[RefusalReason]
) -> None:
    partitions = {**build_metadata().partitions, TopicPartition("elsewhere", 0): build_partition(1, 3)}
    for brokers in (BROKER_2_FENCED.brokers, build_metadata().brokers):
        metadata = build_metadata(brokers.values(), partitions, [TopicPartition(*moving)])
        down = replace(DEGRADED, alerts=(DOWN_ALERT,), has_restart_command=True, metadata=metadata)
        assert refusal_reasons(down, RESTART) == reasons


def test_a_failed_or_interrupted_case_opens_the_circuit_breaker_until_it_is_undone() -> None:
    assert refusal_reasons(replace(DEGRADED, cases=(build_case(3, ActionOutcome.FAILED),))) == [
        RefusalReason.OTHER_ZONE,
        RefusalReason.CIRCUIT_OPEN,
    ]
    assert refusal_reasons(replace(DEGRADED, cases=(build_case(3, ActionOutcome.BEGUN),))) == [
        RefusalReason.OTHER_ZONE,
        RefusalReason.CIRCUIT_OPEN,
    ]
    assert refusal_reasons(replace(DEGRADED, cases=(build_case(3, ActionOutcome.UNDONE),))) == []


def test_refused_cases_and_cases_older_than_a_day_do_not_count() -> None:
    refused = tuple(build_case(1, ActionOutcome.REFUSED, minutes) for minutes in (1, 2, 3))
    old = tuple(build_case(1, ActionOutcome.UNDONE, 24 * 60 + minutes) for minutes in (0, 1, 2))
    assert refusal_reasons(replace(DEGRADED, cases=refused + old)) == []


def test_a_reason_of_an_operator_replaces_the_alert_but_overrides_no_other_fail_safe() -> None:
    request = replace(DEMOTION, reason="its disk is to be replaced")
    without_alert = replace(DEGRADED, alerts=())
    assert refusal_reasons(without_alert, request) == []
    planned = replace(without_alert, is_watched=False, planned_broker_ids={2})
    assert refusal_reasons(planned, request) == []
    assert refusal_reasons(replace(DEGRADED, planned_broker_ids={3})) == []
    reassigning = replace(without_alert, metadata=REASSIGNING)
    assert refusal_reasons(reassigning, request) == [RefusalReason.MOVING]


def test_a_broker_that_is_cut_off_may_be_demoted_after_half_a_minute() -> None:
    for age_s, reasons in ((29, [RefusalReason.TOO_YOUNG]), (30, [])):
        alert = ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, NOON - timedelta(seconds=age_s))
        assert refusal_reasons(replace(DEGRADED, alerts=(alert,))) == reasons


@pytest.mark.parametrize(
    ("snapshot", "reasons"),
    [
        (replace(DEGRADED, alerts=()), []),
        (DEGRADED, [RefusalReason.STILL_SICK]),
        (replace(DEGRADED, alerts=(), metadata=BROKER_2_FENCED), [RefusalReason.FENCED]),
        (replace(DEGRADED, alerts=(), metadata=REASSIGNING), [RefusalReason.MOVING]),
        (replace(DEGRADED, alerts=(), metadata=WITHOUT_BROKER_2), [RefusalReason.NOT_REGISTERED]),
    ],
)
def test_an_undo_has_its_own_fail_safes(snapshot: ClusterSnapshot, reasons: list[RefusalReason]) -> None:
    refusals = find_undo_refusals(DEMOTED, snapshot, None, RULES[DEMOTED.kind])
    assert [refusal.reason for refusal in refusals] == reasons


def test_an_operator_can_close_the_case_of_a_removed_broker_with_a_reason() -> None:
    removed = replace(DEGRADED, alerts=(), metadata=WITHOUT_BROKER_2)
    assert find_undo_refusals(DEMOTED, removed, "replaced by 4", RULES[DEMOTED.kind]) == ()


@pytest.mark.parametrize("behind", [TopicPartition("t", 1), TopicPartition("followed", 0)])
def test_leadership_is_not_returned_to_a_broker_that_is_out_of_sync(behind: TopicPartition) -> None:
    """An operator may return it where the broker can lead: it may never catch up in one of its partitions."""
    in_sync = {
        TopicPartition("t", 1): build_partition(3, 1, 2),
        TopicPartition("followed", 0): build_partition(3, 1, 2),
    }
    metadata = build_metadata(partitions=in_sync | {behind: build_partition(3, 1, 2, out_of_sync=(2,))})
    snapshot = replace(DEGRADED, alerts=(), metadata=metadata)
    (refusal,) = find_undo_refusals(DEMOTED, snapshot, None, RULES[DEMOTED.kind])
    assert refusal.reason is RefusalReason.NOT_IN_SYNC
    assert f"{behind.topic}-{behind.partition}" in refusal.explanation
    assert not find_undo_refusals(DEMOTED, snapshot, "now", RULES[DEMOTED.kind])
