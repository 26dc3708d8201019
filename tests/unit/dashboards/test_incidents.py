"""A week's findings and acts as they stood when it closed."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.actions import Act, acts
from fleetgauge_dashboards.views.incidents import Durations, incidents, times
from fleetgauge_operations.mitigation.case import Outcome

WEEK = WeekCalendar("UTC", "monday").of_day(date(2026, 3, 2))
START = WEEK.start


def finding(name: str, first_sign_s: float, named_s: float, cleared_s: float | None) -> list[HealthEvent]:
    steps = [(first_sign_s, "HEALTHY", "SUSPECT")] if first_sign_s != named_s else []
    steps.append((named_s, "SUSPECT" if steps else "HEALTHY", "BROKER_DOWN"))
    if cleared_s is not None:
        steps.append((cleared_s, "BROKER_DOWN", "HEALTHY"))
    return [
        HealthEvent(
            f"{name}-{number}", name, name, 2, START + timedelta(seconds=s), was, is_, "BROKER_DOWN", "{}"
        )
        for number, (s, was, is_) in enumerate(steps)
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


def test_times_are_from_the_first_sign_to_the_name_to_the_act_to_the_end() -> None:
    done = acts([row("1", "a", 130), row("2", "a", 160), row("3", "b", 120)], WEEK)
    (found,) = incidents(finding("a", 100, 106, 400), done, {}, WEEK)
    assert (found.detected_s, found.acted_s, found.lasted_s) == (6, 24, 294)
    assert (found.cluster_id, found.broker_id, found.kind) == ("a", 2, "BROKER_DOWN")


def test_a_refusal_and_an_advice_are_no_act() -> None:
    done = acts([row("1", "a", 130, outcome="refused"), row("2", "a", 131, outcome="advised")], WEEK)
    assert incidents(finding("a", 100, 106, 400), done, {}, WEEK)[0].acted_s is None


def test_minutes_are_saved_where_the_cluster_is_well_while_its_broker_is_ill() -> None:
    """Acted on after 2 min 10 s, over after 10 min: of the 7 whole minutes between two were bad."""
    done = acts([row("1", "a", 130)], WEEK)
    bad = {START + timedelta(minutes=m) for m in (1, 2, 4, 7, 12)}
    (found,) = incidents(finding("a", 60, 66, 600), done, {"a": bad}, WEEK)
    assert found.saved_min == 5


def test_nothing_is_saved_where_nothing_was_lost_or_nothing_done() -> None:
    done = acts([row("1", "a", 130)], WEEK)
    later = {START + timedelta(minutes=9)}
    assert incidents(finding("a", 60, 66, 600), done, {"a": later}, WEEK)[0].saved_min == 0
    assert (
        incidents(finding("a", 60, 66, None), done, {"a": {START + timedelta(minutes=1)}}, WEEK)[0].saved_min
        == 0
    )
    assert incidents(finding("a", 60, 66, 600), (), {"a": later}, WEEK)[0].saved_min is None


def test_who_is_told_to_go_on_is_a_hand_over() -> None:
    outcomes = ("done", "undone", "failed", "refused", "advised", "begun")
    found = acts([row(name, "a", n, outcome=name) for n, name in enumerate(outcomes)], WEEK)
    assert [one.outcome for one in found if one.was_handed_over] == ["failed", "refused", "advised"]
    assert [one.outcome for one in found if not one.was_done] == ["refused", "advised"]


def test_what_was_named_at_once_has_no_time_to_detect() -> None:
    assert incidents(finding("a", 100, 100, 400), (), {}, WEEK)[0].detected_s is None


def test_only_what_was_named_in_the_week_is_the_weeks() -> None:
    length_s = (WEEK.end - WEEK.start).total_seconds()
    before, edge = finding("before", -20, -10, 50), finding("edge", -3, 0, 50)
    last, after = (
        finding("last", length_s - 9, length_s - 1, None),
        finding("after", length_s - 5, length_s, None),
    )
    found = incidents([*before, *edge, *last, *after], (), {}, WEEK)
    assert [one.cluster_id for one in found] == ["edge", "last"]


def test_what_came_after_the_week_closed_is_not_known_in_it() -> None:
    """A closed week's review must not change."""
    late_s = (WEEK.closes_at - WEEK.start).total_seconds()
    done = acts([row("1", "a", 50, outcome="undone", ends=WEEK.closes_at)], WEEK)
    assert (done[0].outcome, done[0].ended) == ("done", None)
    (found,) = incidents(finding("a", 10, 20, late_s), done, {}, WEEK)
    assert found.lasted_s is None
    assert incidents(finding("a", 10, 20, late_s - 1), done, {}, WEEK)[0].lasted_s == late_s - 21


def test_an_act_has_its_outcome_and_words_whoever_wrote_its_detail() -> None:
    refused = row("1", "a", 1, outcome="refused", words=["only_replica: t-0 has one replica"])
    rolled = row("2", "a", 2, kind="roll", broker_id=None, detail="by hand", ends=START + timedelta(hours=1))
    nothing = row("3", "a", 3, detail=None, author=None, reason=None)
    listed = row("4", "a", 4, detail="[1]")
    found = acts([listed, nothing, rolled, refused], WEEK)
    assert found[0] == Act(
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
    assert [(one.outcome, one.words) for one in found[1:]] == [(None, ())] * 3
    assert found[1].ended == datetime(2026, 3, 2, 1, tzinfo=UTC)


def test_the_median_and_the_longest_of_what_is_known() -> None:
    assert times([None, 6.0, 2.0, 30.0]) == Durations(6.0, 30.0, 3)
    assert times([None]) is None


def test_outcomes_are_called_as_mitigation_calls_them() -> None:
    assert {"refused", "advised", "undone", "done"} <= set(Outcome)
