"""A week's findings and actions as they stood when it closed."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_core.tables import ActionOutcome
from fleetgauge_dashboards.views.actions import RecordedAction, select_actions_of_week
from fleetgauge_dashboards.views.incidents import DurationSummary, list_incidents, summarize_durations

WEEK = WeekCalendar("UTC", "monday").week_of(date(2026, 3, 2))
START = WEEK.start


def finding(name: str, first_sign_s: float, opened_s: float, cleared_s: float | None) -> list[HealthEvent]:
    steps = [(first_sign_s, "HEALTHY", "SUSPECT")] if first_sign_s != opened_s else []
    steps.append((opened_s, "SUSPECT" if steps else "HEALTHY", "BROKER_DOWN"))
    if cleared_s is not None:
        steps.append((cleared_s, "BROKER_DOWN", "HEALTHY"))
    return [
        HealthEvent(
            f"{name}-{number}",
            name,
            name,
            2,
            START + timedelta(seconds=second),
            left,
            entered,
            "BROKER_DOWN",
            "{}",
        )
        for number, (second, left, entered) in enumerate(steps)
    ]


def row(action_id: str, cluster_id: str, starts_s: float, **changed: Any) -> dict[str, Any]:
    detail = {"outcome": changed.pop("outcome", "done"), "words": changed.pop("words", [])}
    values = {
        "action_id": action_id,
        "kind": "demote",
        "cluster_id": cluster_id,
        "broker_id": 2,
        "starts": START + timedelta(seconds=starts_s),
        "ends": None,
        "reason": "DEGRADED",
        "author": "ada",
        "detail": json.dumps(detail),
    }
    return values | changed


def test_durations_run_from_first_sign_to_opening_to_action_to_end() -> None:
    actions = select_actions_of_week([row("1", "a", 130), row("2", "a", 160), row("3", "b", 120)], WEEK)
    (incident,) = list_incidents(finding("a", 100, 106, 400), actions, {}, WEEK)
    assert (incident.detected_s, incident.acted_s, incident.lasted_s) == (6, 24, 294)
    assert (incident.cluster_id, incident.broker_id, incident.kind) == ("a", 2, "BROKER_DOWN")


def test_a_refused_or_advised_action_does_not_count() -> None:
    actions = select_actions_of_week(
        [row("1", "a", 130, outcome="refused"), row("2", "a", 131, outcome="advised")], WEEK
    )
    assert list_incidents(finding("a", 100, 106, 400), actions, {}, WEEK)[0].acted_s is None


def test_minutes_are_saved_while_the_cluster_meets_its_objective_despite_the_open_finding() -> None:
    """Use an action at 2 min 10 s and an end at 10 min: two of the 7 whole minutes between were bad."""
    actions = select_actions_of_week([row("1", "a", 130)], WEEK)
    bad = {START + timedelta(minutes=m) for m in (1, 2, 4, 7, 12)}
    (incident,) = list_incidents(finding("a", 60, 66, 600), actions, {"a": bad}, WEEK)
    assert incident.saved_min == 5


def test_no_minutes_are_saved_without_earlier_bad_minutes_or_without_an_action() -> None:
    actions = select_actions_of_week([row("1", "a", 130)], WEEK)
    later = {START + timedelta(minutes=9)}
    assert list_incidents(finding("a", 60, 66, 600), actions, {"a": later}, WEEK)[0].saved_min == 0
    assert (
        list_incidents(finding("a", 60, 66, None), actions, {"a": {START + timedelta(minutes=1)}}, WEEK)[
            0
        ].saved_min
        == 0
    )
    assert list_incidents(finding("a", 60, 66, 600), (), {"a": later}, WEEK)[0].saved_min is None


def test_failed_refused_and_advised_actions_need_an_operator() -> None:
    outcomes = ("done", "undone", "failed", "refused", "advised", "begun")
    actions = select_actions_of_week(
        [row(name, "a", n, outcome=name) for n, name in enumerate(outcomes)], WEEK
    )
    assert [action.outcome for action in actions if action.needs_operator] == ["failed", "refused", "advised"]
    assert [action.outcome for action in actions if not action.has_effect] == ["refused", "advised"]


def test_an_alert_without_a_suspicion_has_no_time_to_detect() -> None:
    assert list_incidents(finding("a", 100, 100, 400), (), {}, WEEK)[0].detected_s is None


def test_only_findings_that_opened_in_the_week_are_its_incidents() -> None:
    length_s = (WEEK.end - WEEK.start).total_seconds()
    before, edge = finding("before", -20, -10, 50), finding("edge", -3, 0, 50)
    last, after = (
        finding("last", length_s - 9, length_s - 1, None),
        finding("after", length_s - 5, length_s, None),
    )
    incidents = list_incidents([*before, *edge, *last, *after], (), {}, WEEK)
    assert [incident.cluster_id for incident in incidents] == ["edge", "last"]


def test_events_after_the_week_closed_do_not_change_its_review() -> None:
    """Check that the review of a closed week does not change."""
    late_s = (WEEK.closes_at - WEEK.start).total_seconds()
    actions = select_actions_of_week([row("1", "a", 50, outcome="undone", ends=WEEK.closes_at)], WEEK)
    assert (actions[0].outcome, actions[0].ended) == ("done", None)
    (incident,) = list_incidents(finding("a", 10, 20, late_s), actions, {}, WEEK)
    assert incident.lasted_s is None
    assert list_incidents(finding("a", 10, 20, late_s - 1), actions, {}, WEEK)[0].lasted_s == late_s - 21


def test_an_alert_that_ended_with_the_removal_of_its_cluster_is_marked() -> None:
    *earlier, end = finding("a", 10, 20, 80)
    for evidence, removed in (("{}", False), ('{"watched": false}', True)):
        (incident,) = list_incidents([*earlier, replace(end, evidence=evidence)], [], {}, WEEK)
        assert (incident.lasted_s, incident.removed) == (60, removed)


def test_an_action_is_parsed_whatever_its_detail_contains() -> None:
    refused = row("1", "a", 1, outcome="refused", words=["only_replica: t-0 has one replica"])
    rolled = row("2", "a", 2, kind="roll", broker_id=None, detail="by hand", ends=START + timedelta(hours=1))
    nothing = row("3", "a", 3, detail=None, author=None, reason=None)
    listed = row("4", "a", 4, detail="[1]")
    actions = select_actions_of_week([listed, nothing, rolled, refused], WEEK)
    assert actions[0] == RecordedAction(
        START + timedelta(seconds=1),
        "demote",
        "a",
        2,
        "ada",
        "refused",
        None,
        "DEGRADED",
        ("only_replica: t-0 has one replica",),
    )
    assert [(action.outcome, action.words) for action in actions[1:]] == [(None, ())] * 3
    assert actions[1].ended == datetime(2026, 3, 2, 1, tzinfo=UTC)


def test_durations_are_summarized_without_unknown_ones() -> None:
    assert summarize_durations([None, 6.0, 2.0, 30.0]) == DurationSummary(6.0, 30.0, 3)
    assert summarize_durations([None]) is None


def test_the_outcomes_without_effect_exist_in_mitigation() -> None:
    assert {"refused", "advised", "undone", "done"} <= set(ActionOutcome)
