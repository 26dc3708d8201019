"""The next step that `mitigate run` takes for a cluster, in one snapshot at a time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import RefusalReason
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot
from fleetgauge_operations.mitigation.plan.policy import (
    AUTHOR,
    ApplyAction,
    FailCase,
    MitigationPolicy,
    NotifyOperator,
    PolicyStep,
    ResolveCase,
    UndoAction,
)
from tests.unit.operations.mitigation.simulated_cluster import (
    HOUR_AGO,
    NOON,
    build_broker,
    build_metadata,
    build_partition,
    degraded_alert,
)

ACT: Mapping[str, str] = dict.fromkeys(ActionKind, "act") | {ActionKind.EVACUATE: "advise"}
ADVISE: Mapping[str, str] = {}
MINUTE = timedelta(minutes=1)
DEMOTION = ActionRequest(ActionKind.DEMOTE, "orders", 2)
QUARANTINE = ActionRequest(ActionKind.QUARANTINE_RESTART, "orders", 2)
RESTART = ActionRequest(ActionKind.RESTART, "orders", 2)
#: The controller demoted broker 2 half an hour ago.
DEMOTED = ActionCase(
    "c1",
    ActionKind.DEMOTE,
    "orders",
    2,
    "zone-2",
    AUTHOR,
    "DEGRADED",
    NOON - 30 * MINUTE,
    ActionOutcome.DONE,
)
DEGRADED = ClusterSnapshot(build_metadata(), (degraded_alert(2),), has_restart_command=True)
HEALTHY = ClusterSnapshot(build_metadata(), cases=(DEMOTED,), healthy_since={2: NOON - 10 * MINUTE})
BROKER_2_FENCED = build_metadata((build_broker(1), build_broker(2, fenced=True), build_broker(3)))


def decide(snapshot: ClusterSnapshot, modes: Mapping[str, str] = ACT) -> PolicyStep | None:
    """Return the next step; modes of the snapshot take precedence."""
    return MitigationPolicy("orders", replace(snapshot, modes={**modes, **snapshot.modes}), NOON).decide()


def decide_notification(
    snapshot: ClusterSnapshot, modes: Mapping[str, str] = ACT
) -> tuple[str, str, list[str]]:
    """Return action, outcome and refusals of which an operator is notified."""
    step = decide(snapshot, modes)
    assert isinstance(step, NotifyOperator)
    return step.request.kind, step.outcome, [refusal.reason for refusal in step.refusals]


def test_a_degraded_broker_is_demoted_in_act_mode() -> None:
    assert decide(DEGRADED) == ApplyAction(DEMOTION, "DEGRADED")


def test_in_advise_mode_an_operator_is_notified_once_per_alert() -> None:
    assert decide_notification(DEGRADED, ADVISE) == ("demote", "advised", [])
    advised = replace(DEMOTED, outcome=ActionOutcome.ADVISED)
    assert decide(replace(DEGRADED, cases=(advised,)), ADVISE) is None
    earlier_alert = replace(advised, began=HOUR_AGO - timedelta(hours=1))
    assert decide_notification(replace(DEGRADED, cases=(earlier_alert,)), ADVISE) == (
        "demote",
        "advised",
        [],
    )


def test_an_operator_is_notified_of_a_refusal_and_again_if_its_reason_changes() -> None:
    two_alerts = replace(
        DEGRADED, alerts=(degraded_alert(2), ActiveAlert(3, HealthState.BROKER_DOWN, HOUR_AGO))
    )
    assert decide_notification(two_alerts) == ("demote", "refused", [RefusalReason.SECOND_SICK])
    refused = replace(DEMOTED, outcome=ActionOutcome.REFUSED, refused_by=(RefusalReason.SECOND_SICK,))
    step = decide(replace(two_alerts, cases=(refused,)))
    assert isinstance(step, NotifyOperator)
    assert (step.request, [refusal.reason for refusal in step.refusals]) == (
        ActionRequest(ActionKind.RESTART, "orders", 3),
        [RefusalReason.SECOND_SICK],
    )
    reassigning = replace(
        DEGRADED, metadata=build_metadata(reassigning=[TopicPartition("t", 0)]), cases=(refused,)
    )
    assert decide_notification(reassigning) == ("demote", "refused", [RefusalReason.MOVING])


def test_nothing_is_done_while_all_refusals_are_temporary() -> None:
    recent_alert = replace(DEGRADED, alerts=(degraded_alert(2, NOON - timedelta(seconds=70)),))
    assert decide(recent_alert) is None
    recent_case = replace(DEMOTED, outcome=ActionOutcome.UNDONE, broker_id=1, began=NOON - 9 * MINUTE)
    assert decide(replace(DEGRADED, cases=(recent_case,))) is None


def test_the_next_action_of_the_ladder_follows_while_the_broker_remains_degraded() -> None:
    snapshot = replace(DEGRADED, modes={"demote": "off"})
    quarantined = replace(DEMOTED, kind=ActionKind.QUARANTINE_RESTART, began=NOON - 11 * MINUTE)
    assert decide(snapshot) == ApplyAction(QUARANTINE, "DEGRADED")
    assert decide_notification(replace(snapshot, cases=(quarantined,))) == (
        "evacuate",
        "advised",
        [RefusalReason.PROPOSED_ONLY],
    )


def test_an_operator_is_notified_of_a_demoted_broker_whose_alert_does_not_end() -> None:
    """A demoted broker serves no probes that could prove it healthy, so no further action is warranted."""
    recently_demoted = replace(DEGRADED, cases=(replace(DEMOTED, began=NOON - 9 * MINUTE),))
    assert decide(recently_demoted) is None
    demoted = replace(DEGRADED, cases=(DEMOTED,))
    assert decide_notification(demoted) == ("demote", "refused", [RefusalReason.EXHAUSTED])
    exhausted = replace(
        DEMOTED,
        case_id="c2",
        outcome=ActionOutcome.REFUSED,
        refused_by=(RefusalReason.EXHAUSTED,),
        began=NOON,
    )
    assert decide(replace(demoted, cases=(DEMOTED, exhausted))) is None
    healthy = replace(demoted, alerts=(), healthy_since={2: NOON}, cases=(DEMOTED, exhausted))
    assert decide(healthy) == ResolveCase(exhausted)


def test_an_action_whose_mode_is_off_is_skipped() -> None:
    without_demotion = replace(DEGRADED, modes={"demote": "off"})
    assert decide(without_demotion) == ApplyAction(QUARANTINE, "DEGRADED")


def test_a_broker_that_is_down_is_restarted_twice_per_alert_then_an_operator_is_notified() -> None:
    alert = ActiveAlert(2, HealthState.BROKER_DOWN, HOUR_AGO)
    down = replace(DEGRADED, alerts=(alert,), metadata=BROKER_2_FENCED)
    assert decide(down) == ApplyAction(RESTART, "BROKER_DOWN")
    first = replace(DEMOTED, kind=ActionKind.RESTART, ended=NOON - 25 * MINUTE)
    assert decide(replace(down, cases=(first,))) == ApplyAction(RESTART, "BROKER_DOWN")
    second = replace(first, case_id="c2", began=NOON - 9 * MINUTE)
    assert decide(replace(down, cases=(first, second))) is None
    second = replace(second, began=NOON - 11 * MINUTE)
    assert decide_notification(replace(down, cases=(first, second))) == (
        "restart",
        "refused",
        [RefusalReason.EXHAUSTED],
    )


def test_an_interrupted_case_is_marked_failed_before_any_other_step() -> None:
    interrupted = replace(DEMOTED, outcome=ActionOutcome.BEGUN, author="ann")
    assert decide(replace(DEGRADED, cases=(interrupted,))) == FailCase(interrupted)
    assert decide(replace(HEALTHY, cases=(interrupted,))) == FailCase(interrupted)


def test_nothing_is_done_or_undone_without_a_watch_or_during_planned_maintenance() -> None:
    assert decide(replace(DEGRADED, is_watched=False)) is None
    assert decide(replace(DEGRADED, planned_broker_ids={2})) is None
    assert decide(replace(HEALTHY, is_watched=False)) is None


def test_an_action_that_an_operator_undoes_during_the_alert_is_not_repeated() -> None:
    overruled = replace(
        DEMOTED, outcome=ActionOutcome.UNDONE, undone_since=NOON - 20 * MINUTE, overruled=True
    )
    assert decide(replace(DEGRADED, cases=(overruled,))) is None
    alert_before_undo = degraded_alert(2, NOON - 25 * MINUTE)
    assert decide(replace(DEGRADED, alerts=(alert_before_undo,), cases=(overruled,))) is None
    alert_after_undo = degraded_alert(2, NOON - 19 * MINUTE)
    assert decide(replace(DEGRADED, alerts=(alert_after_undo,), cases=(overruled,))) == ApplyAction(
        DEMOTION, "DEGRADED"
    )


def test_an_action_that_the_controller_has_undone_is_repeated() -> None:
    """The broker may have become degraded again because its leadership was returned to it."""
    undone = replace(DEMOTED, outcome=ActionOutcome.UNDONE, undone_since=NOON - 20 * MINUTE)
    alert_before_undo = degraded_alert(2, NOON - 21 * MINUTE)
    assert decide(replace(DEGRADED, alerts=(alert_before_undo,), cases=(undone,))) == ApplyAction(
        DEMOTION, "DEGRADED"
    )


def test_an_interrupted_undo_is_marked_failed_if_an_operator_began_it_and_repeated_otherwise() -> None:
    by_operator = replace(DEMOTED, author="ann", undone_since=NOON, overruled=True)
    assert decide(replace(HEALTHY, cases=(by_operator,))) == FailCase(by_operator)
    by_controller = replace(by_operator, author=AUTHOR)
    assert decide(replace(HEALTHY, cases=(by_controller,))) == UndoAction(by_controller)


@pytest.mark.parametrize("state", [HealthState.NO_DATA, HealthState.CLUSTER_DOWN])
def test_an_alert_of_the_whole_cluster_warrants_no_action(state: HealthState) -> None:
    assert decide(replace(DEGRADED, alerts=(ActiveAlert(None, state, HOUR_AGO),))) is None


def test_an_action_is_undone_once_the_broker_has_been_healthy_for_ten_minutes() -> None:
    assert decide(HEALTHY) == UndoAction(DEMOTED)
    assert decide(replace(HEALTHY, healthy_since={2: NOON - timedelta(seconds=599)})) is None
    assert decide(replace(HEALTHY, healthy_since={})) is None


def test_actions_are_undone_in_reverse_order() -> None:
    quarantined = replace(DEMOTED, kind=ActionKind.QUARANTINE_RESTART, case_id="c2")
    assert decide(replace(HEALTHY, cases=(DEMOTED, quarantined))) == UndoAction(quarantined)


def test_the_controller_undoes_no_action_of_an_operator_and_none_in_advise_mode() -> None:
    assert decide(replace(HEALTHY, cases=(replace(DEMOTED, author="ann"),))) is None
    assert decide(HEALTHY, ADVISE) is None


def test_no_action_is_undone_during_a_reassignment() -> None:
    reassigning = build_metadata(reassigning=[TopicPartition("t", 0)])
    assert decide(replace(HEALTHY, metadata=reassigning)) is None


def test_an_action_is_undone_although_the_broker_has_no_replica_any_more() -> None:
    without_replica = build_metadata(partitions={TopicPartition("t", 0): build_partition(1, 3)})
    assert decide(replace(HEALTHY, metadata=without_replica)) == UndoAction(DEMOTED)


@pytest.mark.parametrize(
    "disturbed",
    [
        replace(HEALTHY, alerts=(ActiveAlert(None, HealthState.NO_DATA, HOUR_AGO),)),
        replace(HEALTHY, alerts=(degraded_alert(3),), cases=(DEMOTED, replace(DEMOTED, broker_id=3))),
        replace(HEALTHY, is_rolling=True),
        replace(HEALTHY, planned_broker_ids={1}),
        replace(
            HEALTHY, metadata=build_metadata((build_broker(1, fenced=True), build_broker(2), build_broker(3)))
        ),
    ],
)
def test_no_action_is_undone_while_the_cluster_is_disturbed(disturbed: ClusterSnapshot) -> None:
    assert not isinstance(decide(disturbed), UndoAction)


def test_an_action_is_undone_although_an_error_budget_is_burning() -> None:
    burning = replace(HEALTHY, alerts=(ActiveAlert(None, HealthState.LATENCY_BURN_SLOW, HOUR_AGO),))
    assert decide(burning) == UndoAction(DEMOTED)


@pytest.mark.parametrize("outcome", [ActionOutcome.ADVISED, ActionOutcome.REFUSED])
def test_an_operator_who_was_notified_is_notified_once_that_the_broker_is_healthy(
    outcome: ActionOutcome,
) -> None:
    notified = replace(DEMOTED, outcome=outcome)
    assert decide(replace(HEALTHY, cases=(notified,))) == ResolveCase(notified)
    assert decide(replace(HEALTHY, cases=(replace(notified, ended=NOON),))) is None
    assert decide(replace(DEGRADED, cases=(notified,)), ADVISE) is None
