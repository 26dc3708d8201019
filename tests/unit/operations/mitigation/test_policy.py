"""What is done unasked: each kind of step, and stories in which it is the only one to act."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.mitigation.case import Action, ActionRequest, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.fail_safes import RefusalReason
from fleetgauge_operations.mitigation.policy import (
    AUTHOR,
    ApplyAction,
    FailCase,
    MitigationPolicy,
    NotifyOperator,
    PolicyStep,
    ResolveCase,
    UndoAction,
)
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, ClusterSnapshot
from tests.unit.operations.mitigation.simulated_cluster import (
    LONG_AGO,
    NOON,
    broker,
    cluster_metadata,
    degraded,
    partition,
)

ACT: Mapping[str, str] = dict.fromkeys(Action, "act") | {Action.EVACUATE: "advise"}
ADVISE: Mapping[str, str] = {}
SICK = ClusterSnapshot(cluster_metadata(), (degraded(2),), has_restart_command=True)
DEMOTE = ActionRequest(Action.DEMOTE, "orders", 2)
DONE = MitigationCase(
    "c1",
    Action.DEMOTE,
    "orders",
    2,
    "zone-2",
    AUTHOR,
    "DEGRADED",
    NOON - timedelta(minutes=30),
    CaseOutcome.DONE,
)
WELL = ClusterSnapshot(cluster_metadata(), cases=(DONE,), healthy_since={2: NOON - timedelta(minutes=10)})


def step(situation: ClusterSnapshot, modes: Mapping[str, str] = ACT) -> PolicyStep | None:
    return MitigationPolicy("orders", replace(situation, modes={**modes, **situation.modes}), NOON).decide()


def handed(situation: ClusterSnapshot, modes: Mapping[str, str] = ACT) -> tuple[str, str, list[str]]:
    found = step(situation, modes)
    assert isinstance(found, NotifyOperator)
    return found.request.action, found.outcome, [refusal.reason for refusal in found.refusals]


def test_where_it_may_it_acts() -> None:
    assert step(SICK) == ApplyAction(DEMOTE, "DEGRADED")


def test_where_it_may_not_a_person_is_told_once_while_it_lasts() -> None:
    assert handed(SICK, ADVISE) == ("demote", "advised", [])
    told = replace(DONE, outcome=CaseOutcome.ADVISED)
    assert step(replace(SICK, cases=(told,)), ADVISE) is None
    before = replace(told, began=LONG_AGO - timedelta(hours=1))
    assert handed(replace(SICK, cases=(before,)), ADVISE) == ("demote", "advised", [])


def test_what_is_forbidden_is_for_a_person_who_is_told_again_when_the_reason_is_another() -> None:
    two = replace(SICK, alerts=(degraded(2), ActiveAlert(3, HealthState.BROKER_DOWN, LONG_AGO)))
    assert handed(two) == ("demote", "refused", [RefusalReason.SECOND_SICK])
    told = replace(DONE, outcome=CaseOutcome.REFUSED, against=(RefusalReason.SECOND_SICK,))
    found = step(replace(two, cases=(told,)))
    assert isinstance(found, NotifyOperator)
    assert (found.request, [refusal.reason for refusal in found.refusals]) == (
        ActionRequest(Action.RESTART, "orders", 3),
        [RefusalReason.SECOND_SICK],
    )
    moving = replace(SICK, metadata=cluster_metadata(reassigning=[TopicPartition("t", 0)]), cases=(told,))
    assert handed(moving) == ("demote", "refused", [RefusalReason.MOVING])


def test_what_only_has_to_wait_is_waited_for() -> None:
    young = replace(SICK, alerts=(degraded(2, NOON - timedelta(seconds=70)),))
    assert step(young) is None
    soon = replace(DONE, outcome=CaseOutcome.UNDONE, broker_id=1, began=NOON - timedelta(minutes=9))
    assert step(replace(SICK, cases=(soon,))) is None


def test_while_it_stays_sick_the_ladder_is_climbed() -> None:
    measured = replace(SICK, modes={"demote": "off"})
    quarantined = replace(DONE, action=Action.QUARANTINE_RESTART, began=NOON - timedelta(minutes=11))
    assert step(measured) == ApplyAction(replace(DEMOTE, action=Action.QUARANTINE_RESTART), "DEGRADED")
    assert handed(replace(measured, cases=(quarantined,))) == (
        "evacuate",
        "advised",
        [RefusalReason.PROPOSED_ONLY],
    )


def test_who_leads_nothing_is_not_measured_and_so_nothing_more_is_done_about_it_but_to_say_so() -> None:
    """It may have been well for long: nobody would know."""
    demoted = replace(SICK, cases=(replace(DONE, began=NOON - timedelta(minutes=9)),))
    assert step(demoted) is None
    demoted = replace(SICK, cases=(DONE,))
    assert handed(demoted) == ("demote", "refused", [RefusalReason.EXHAUSTED])
    told = replace(
        DONE, case_id="c2", outcome=CaseOutcome.REFUSED, against=(RefusalReason.EXHAUSTED,), began=NOON
    )
    assert step(replace(demoted, cases=(DONE, told))) is None
    well = replace(demoted, alerts=(), healthy_since={2: NOON}, cases=(DONE, told))
    assert step(well) == ResolveCase(told)


def test_what_is_off_is_left_out() -> None:
    off = replace(SICK, modes={"demote": "off"})
    assert step(off) == ApplyAction(replace(DEMOTE, action=Action.QUARANTINE_RESTART), "DEGRADED")


def test_who_is_down_is_restarted_twice_an_episode_and_then_somebody_is_called() -> None:
    fenced = cluster_metadata((broker(1), broker(2, fenced=True), broker(3)))
    down = replace(SICK, alerts=(ActiveAlert(2, HealthState.BROKER_DOWN, LONG_AGO),), metadata=fenced)
    assert step(down) == ApplyAction(replace(DEMOTE, action=Action.RESTART), "BROKER_DOWN")
    first = replace(DONE, action=Action.RESTART)
    assert step(replace(down, cases=(first,))) == ApplyAction(
        replace(DEMOTE, action=Action.RESTART), "BROKER_DOWN"
    )
    second = replace(first, case_id="c2", began=NOON - timedelta(minutes=9))
    assert step(replace(down, cases=(first, second))) is None
    second = replace(second, began=NOON - timedelta(minutes=11))
    assert handed(replace(down, cases=(first, second))) == ("restart", "refused", [RefusalReason.EXHAUSTED])


def test_what_was_begun_and_has_no_end_is_given_up_before_anything_else_is_done() -> None:
    begun = replace(DONE, outcome=CaseOutcome.BEGUN, author="ann")
    assert step(replace(SICK, cases=(begun,))) == FailCase(begun)
    assert step(replace(WELL, cases=(begun,))) == FailCase(begun)


def test_while_no_watch_is_at_work_nothing_is_done_nor_undone() -> None:
    assert step(replace(SICK, is_watched=False)) is None
    assert step(replace(SICK, planned_broker_ids={2})) is None
    assert step(replace(WELL, is_watched=False)) is None


def test_what_a_person_undoes_while_it_is_sick_is_not_done_again() -> None:
    undone = replace(
        DONE, outcome=CaseOutcome.UNDONE, undone_since=NOON - timedelta(minutes=20), overruled=True
    )
    assert step(replace(SICK, cases=(undone,))) is None
    named_again = degraded(2, NOON - timedelta(minutes=25))
    assert step(replace(SICK, alerts=(named_again,), cases=(undone,))) is None
    of_another_time = degraded(2, NOON - timedelta(minutes=19))
    assert step(replace(SICK, alerts=(of_another_time,), cases=(undone,))) == ApplyAction(DEMOTE, "DEGRADED")


def test_what_this_gave_back_is_no_verdict_of_a_person() -> None:
    """The broker may have got sick again just as its load came back."""
    back = replace(DONE, outcome=CaseOutcome.UNDONE, undone_since=NOON - timedelta(minutes=20))
    again = degraded(2, NOON - timedelta(minutes=21))
    assert step(replace(SICK, alerts=(again,), cases=(back,))) == ApplyAction(DEMOTE, "DEGRADED")


def test_what_a_person_was_killed_undoing_is_given_up() -> None:
    half = replace(DONE, author="ann", undone_since=NOON, overruled=True)
    assert step(replace(WELL, cases=(half,))) == FailCase(half)
    assert step(replace(WELL, cases=(replace(half, author=AUTHOR),))) == UndoAction(
        replace(half, author=AUTHOR)
    )


@pytest.mark.parametrize("phase", [HealthState.NO_DATA, HealthState.CLUSTER_DOWN])
def test_nothing_is_done_about_a_whole_cluster(phase: HealthState) -> None:
    assert step(replace(SICK, alerts=(ActiveAlert(None, phase, LONG_AGO),))) is None


def test_once_well_for_ten_minutes_it_is_undone() -> None:
    assert step(WELL) == UndoAction(DONE)
    assert step(replace(WELL, healthy_since={2: NOON - timedelta(seconds=599)})) is None
    assert step(replace(WELL, healthy_since={})) is None


def test_what_was_done_last_is_undone_first() -> None:
    quarantined = replace(DONE, action=Action.QUARANTINE_RESTART, case_id="c2")
    assert step(replace(WELL, cases=(DONE, quarantined))) == UndoAction(quarantined)


def test_what_a_person_did_or_wants_to_undo_is_theirs() -> None:
    assert step(replace(WELL, cases=(replace(DONE, author="ann"),))) is None
    assert step(WELL, ADVISE) is None


def test_what_may_not_be_undone_yet_is_waited_for() -> None:
    assert step(replace(WELL, metadata=cluster_metadata(reassigning=[TopicPartition("t", 0)]))) is None
    assert step(
        replace(WELL, metadata=cluster_metadata(partitions={TopicPartition("t", 0): partition(1, 3)}))
    ) == UndoAction(DONE)
    for disturbed in (
        replace(WELL, alerts=(ActiveAlert(None, HealthState.NO_DATA, LONG_AGO),)),
        replace(WELL, alerts=(degraded(3),), cases=(DONE, replace(DONE, broker_id=3))),
        replace(WELL, is_rolling=True),
        replace(WELL, planned_broker_ids={1}),
        replace(WELL, metadata=cluster_metadata((broker(1, fenced=True), broker(2), broker(3)))),
    ):
        assert not isinstance(step(disturbed), UndoAction)
    burning = replace(WELL, alerts=(ActiveAlert(None, HealthState.LATENCY_BURN_SLOW, LONG_AGO),))
    assert step(burning) == UndoAction(DONE)


@pytest.mark.parametrize("outcome", [CaseOutcome.ADVISED, CaseOutcome.REFUSED])
def test_who_was_called_is_told_that_it_is_over(outcome: CaseOutcome) -> None:
    told = replace(DONE, outcome=outcome)
    assert step(replace(WELL, cases=(told,))) == ResolveCase(told)
    assert step(replace(WELL, cases=(replace(told, ended=NOON),))) is None
    assert step(replace(SICK, cases=(told,)), ADVISE) is None
