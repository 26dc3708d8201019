"""Mirrors, groups, findings, drills and weeks as they were told last; what is not known stays unknown."""

from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest

from fleetgauge_core import tables
from fleetgauge_dashboards.links import Span, Window
from fleetgauge_dashboards.reader.recovery import RPO_MINUTE
from fleetgauge_dashboards.views.cluster import Number, Verdict
from fleetgauge_dashboards.views.drills import drilled, last_drill
from fleetgauge_dashboards.views.failover import Known
from fleetgauge_dashboards.views.findings import open_findings
from fleetgauge_dashboards.views.groups import REASONS, groups_now, in_words, worst_first
from fleetgauge_dashboards.views.mirrors import MirrorState, mirrors_now
from fleetgauge_dashboards.views.producers import producers_now
from fleetgauge_dashboards.views.recovery import numbers
from fleetgauge_dashboards.views.recovery_freshness import newest_of_each, told, told_until
from fleetgauge_dashboards.views.recovery_weeks import (
    held,
    level,
    measured,
    recovery_week,
    rpo_objective_s,
    shown_weeks,
)
from fleetgauge_dashboards.views.rpo import rpo, rpo_span
from fleetgauge_operations.recovery.plan.forecast import Reason
from fleetgauge_operations.recovery.plan.sync_decision import Verdict as OfAPartition
from tests.browser.recovery_lake import drill, finding, group_minute, mirror_minute, producer_minute, week_row
from tests.unit.dashboards.frames import START, WEEK, frame, minute
from tests.unit.dashboards.recovery_frames import (
    NOW,
    TOLD_NOW,
    UNTIL,
    group,
    group_rows,
    mirror,
    mirror_rows,
    producer_rows,
)

A_TO_B = {"source": "a", "destination": "b"}


def test_the_newest_minute_of_any_table_is_what_was_told() -> None:
    mirrors, groups = mirror_rows([mirror_minute("a", "b", minute(-4))]), group_rows([])
    assert told([mirrors, groups], NOW).until == minute(-3)
    both = [mirrors, group_rows([group_minute("a", "b", "g", START)])]
    assert told(both, NOW) == TOLD_NOW
    assert told([groups], NOW) == told_until(None, NOW)


def test_what_nobody_knows_now_is_not_what_was_known_before() -> None:
    rows = [
        mirror_minute("a", "b", minute(-1)),
        mirror_minute("a", "b", START, behind_s_at_most=None, silent_s=None),
    ]
    for ordered in permutations(rows):
        (row,) = newest_of_each(mirror_rows(ordered), ("source", "destination"))
        assert (row["minute"], row["behind_s_at_most"], row["silent_s"]) == (START, None, None)


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, MirrorState.FRESH),
        ({"fresh": False}, MirrorState.STALE),
        ({"looped": 1}, MirrorState.LOOP),
        ({"looped": 1, "fresh": False}, MirrorState.LOOP),
        ({"looped": None}, MirrorState.FRESH),
        ({"fresh": None}, MirrorState.UNKNOWN),
        # Nothing of it was ever heard: that is no mirror that stands still.
        ({"fresh": False, "partitions": 0, "silent_s": None}, MirrorState.UNKNOWN),
    ],
)
def test_a_mirror_is_as_its_newest_minute_says(changed: dict[str, Any], state: MirrorState) -> None:
    (found,) = mirrors_now(mirror_rows([mirror_minute("a", "b", START, **changed)]), (), NOW)
    assert (found.state, found.now, found.until) == (state, True, UNTIL)


def test_who_did_not_answer_is_silent() -> None:
    rows = [mirror_minute("a", "b", START, source_answers=False), mirror_minute("c", "b", START)]
    rows.append(mirror_minute("d", "b", START, source_answers=None, destination_answers=None))
    assert [one.silent for one in mirrors_now(mirror_rows(rows), (), NOW)] == [("a",), (), ()]


def test_of_a_mirror_that_nobody_tells_of_nobody_knows_though_others_are_told_of() -> None:
    rows = mirror_rows([mirror_minute("a", "b", minute(-5)), mirror_minute("c", "d", START)])
    late, well = mirrors_now(rows, (), NOW)
    assert (late.state, late.now, late.behind_s_at_most) == (MirrorState.UNKNOWN, False, 14.2)
    assert well.state is MirrorState.FRESH


def test_mirrors_are_the_fleet_files_also_where_nothing_is_told_of_them() -> None:
    rows = mirror_rows([mirror_minute("a", "b", START), mirror_minute("old", "b", START)])
    found = mirrors_now(rows, (("new", "b"), ("a", "b")), NOW)
    assert [(one.name, one.state) for one in found] == [
        ("a to b", MirrorState.FRESH),
        ("new to b", MirrorState.UNKNOWN),
    ]


def test_without_a_file_a_mirror_that_is_no_more_is_gone_after_an_hour() -> None:
    rows = [mirror_minute("a", "b", minute(-61)), mirror_minute("c", "d", START)]
    assert [one.name for one in mirrors_now(mirror_rows(rows), (), NOW)] == ["c to d"]


def test_signs_tell_states_apart_without_colour() -> None:
    assert len({one.sign for one in MirrorState}) == len(MirrorState)


def test_the_worst_group_is_first() -> None:
    ordered = [
        group("a", ready=False, lost_at_most=None),
        group("b", ready=False, lost_at_most=900),
        group("c", ready=False, lost_at_most=5, replay_at_most=None),
        group("d", ready=False, lost_at_most=5, replay_at_most=70),
        group("e", ready=None, lost_at_most=10_000),
        group("f", lost_at_most=10_000),
        group("g", lost_at_most=5, replay_at_most=70),
        group("h", lost_at_most=5, replay_at_most=70),
    ]
    assert worst_first(reversed(ordered)) == tuple(ordered)


def _ready(number: int, ready: bool | None, group_id: str = "g", active: str = "a") -> dict[str, Any]:
    return group_minute(active, "b", group_id, minute(number), ready=ready)


def test_a_group_is_so_since_its_answer_changed() -> None:
    rows = [_ready(number, number >= -7) for number in range(-20, 1)]
    (found,) = groups_now(group_rows(reversed(rows)))
    assert (found.ready, found.since, found.or_before) == (True, minute(-7), False)


def test_a_group_that_never_changed_may_have_been_so_before() -> None:
    (found,) = groups_now(group_rows(_ready(number, None) for number in range(-20, 1)))
    assert (found.ready, found.since, found.or_before) == (None, minute(-20), True)


def test_what_was_so_before_a_long_silence_may_have_changed_in_it() -> None:
    numbers_told = [*range(-30, -20), *range(-10, 1)]
    (found,) = groups_now(group_rows(_ready(number, True) for number in numbers_told))
    assert (found.since, found.or_before) == (minute(-10), False)
    short = [*range(-30, -20), *range(-18, 1)]
    (found,) = groups_now(group_rows(_ready(number, True) for number in short))
    assert found.since == minute(-30)


def test_groups_do_not_lend_each_other_their_past() -> None:
    rows = [_ready(number, number >= -5, "g") for number in range(-20, 1)]
    rows += [_ready(number, True, "h") for number in range(-20, 1)]
    rows += [_ready(number, number >= -2, "g", "c") for number in range(-20, 1)]
    since = {(one.active, one.group_id): one.since for one in groups_now(group_rows(rows))}
    assert since == {("a", "g"): minute(-5), ("a", "h"): minute(-20), ("c", "g"): minute(-2)}


def test_a_group_that_its_pairs_newest_minute_does_not_tell_of_is_gone() -> None:
    rows = [_ready(-5, False, "gone"), _ready(0, True), _ready(-5, True, "late", "c")]
    assert {one.group_id for one in groups_now(group_rows(rows))} == {"g", "late"}


def test_the_groups_of_a_pair_that_the_file_names_stay_though_others_are_told_of() -> None:
    rows = group_rows([_ready(-200, True, "last"), _ready(0, True, "now", "c"), _ready(0, True, "old", "d")])
    assert {one.group_id for one in groups_now(rows)} == {"now", "old"}
    assert {one.group_id for one in groups_now(rows, (("a", "b"), ("c", "b")))} == {"last", "now"}


def test_no_groups_are_none() -> None:
    assert groups_now(group_rows([])) == ()


def test_reasons_are_words_and_one_that_is_new_is_shown_as_it_is() -> None:
    (found,) = groups_now(group_rows([group_minute("a", "b", "g", START, reasons="stale, loss,,brand_new")]))
    assert [in_words(one) for one in found.reasons] == [REASONS["stale"], REASONS["loss"], "brand_new"]


def test_every_reason_that_operations_know_has_words() -> None:
    assert {one.value for one in OfAPartition if not one.is_fine} | {one.value for one in Reason} <= set(
        REASONS
    )


def test_producers_get_through_or_not_or_nobody_knows() -> None:
    rows = [
        producer_minute("a", START, acknowledged=1),
        producer_minute("b", START, acknowledged=0),
        producer_minute("c", START, sent=1, acknowledged=0),
        producer_minute("d", minute(-5)),
    ]
    found = producers_now(producer_rows(rows), NOW)
    assert [(one.cluster_id, one.get_through, one.now) for one in found] == [
        ("a", True, True),
        ("b", False, True),
        ("c", None, True),
        ("d", True, False),
    ]


def test_a_finding_is_open_until_its_end_and_as_old_as_its_begin() -> None:
    rows = [
        finding(minute(0), "MIRROR_STALE", "a", "b"),
        finding(minute(9), "MIRROR_STALE", "a", "b", summary="told again"),
        finding(minute(2), "NO_HEADROOM", "b"),
        finding(minute(4), "NO_HEADROOM", "b", opens=False),
        finding(minute(5), "MIRROR_BEHIND", "a", "b", severity="page"),
    ]
    first, second = open_findings(reversed(rows))
    assert (first.kind, first.is_page) == ("MIRROR_BEHIND", True)
    assert (second.since, second.summary, second.is_page) == (minute(0), "told again", False)


def test_a_finding_that_came_back_is_as_old_as_its_return() -> None:
    begun = finding(minute(0), "NO_HEADROOM", "b")
    rows = [begun, begun | {"at": minute(3), "opens": False}, begun | {"at": minute(8)}]
    assert [one.since for one in open_findings(rows)] == [minute(8)]


def test_a_drill_is_ready_where_all_of_its_groups_are() -> None:
    newest = START + timedelta(days=1)
    rows = [drill(START, "a"), drill(newest, "a"), drill(newest, "b", ready=False, executed=False)]
    found = drilled(rows)
    assert [(one.at, one.group_id) for one in found] == [(newest, "a"), (newest, "b"), (START, "a")]
    last = last_drill(found)
    assert last is not None
    assert (last.ready, last.groups, last.verdict, last.executed) == (1, 2, "NOT READY", True)
    assert last_drill(()) is None


def _rpo_rows(rows: list[dict[str, Any]]) -> Any:
    return frame(
        tables.MIRROR_MINUTES, RPO_MINUTE, [{name: row.get(name) for name in RPO_MINUTE} for row in rows]
    )


def _behind(
    number: int, at_most: float | None, about: float | None = None, source: str = "a"
) -> dict[str, Any]:
    return {
        "source": source,
        "destination": "b",
        "minute": minute(number),
        "behind_s_at_most": at_most,
        "behind_s": about,
    }


def test_rpo_has_a_break_where_nothing_was_told_or_nobody_knew() -> None:
    rows = [_behind(-1, 99.0), _behind(0, 5.0, 0.2), _behind(1, None), _behind(3, 8.0), _behind(9, 99.0)]
    model = rpo(_rpo_rows(rows), Span(START, minute(5)), 300.0)
    (line,) = model.lines
    assert line.at_most == (5.0, None, None, 8.0, None)
    assert line.estimate == (0.2, None, None, None, None)
    assert model.gaps == (Span(minute(1), minute(3)), Span(minute(4), minute(5)))


def test_what_one_mirror_knows_is_no_gap_and_before_the_first_nothing_is_missed() -> None:
    rows = [_behind(2, 5.0), _behind(3, None), _behind(3, 1.0, source="c"), _behind(4, 1.0, source="c")]
    model = rpo(_rpo_rows(rows), Span(START, minute(5)), None)
    assert model.gaps == ()


def test_a_step_is_its_worst_minute() -> None:
    model = rpo(_rpo_rows([_behind(n, float(n)) for n in range(1440)]), Span(START, minute(1440)), None)
    assert model.grid.step_min > 1
    (line,) = model.lines
    assert line.at_most[0] == model.grid.step_min - 1
    assert line.peak == 1439.0


def test_of_no_minute_there_is_no_line_and_no_gap() -> None:
    model = rpo(_rpo_rows([]), Span(START, minute(5)), None)
    assert (model.lines, model.gaps) == ((), ())


def test_the_span_ends_with_the_data_unless_that_is_late() -> None:
    first = START - timedelta(days=3)
    assert rpo_span(Window.DAY, TOLD_NOW, NOW, first) == Span(UNTIL - timedelta(days=1), UNTIL)
    later = NOW + timedelta(minutes=20)
    assert rpo_span(Window.HOUR, told_until(UNTIL, later), later, first).end == minute(22)
    history = NOW + timedelta(days=40)
    assert rpo_span(Window.HOUR, told_until(UNTIL, history), history, first).end == UNTIL
    assert rpo_span(Window.HOUR, told_until(None, NOW), NOW, None).end == minute(2)


def test_a_young_lakes_span_begins_with_it_and_stays_legible() -> None:
    assert rpo_span(Window.WEEK, TOLD_NOW, NOW, minute(-50)).start == minute(-50)
    assert rpo_span(Window.WEEK, TOLD_NOW, NOW, minute(-2)).start == minute(-14)


def _weeks() -> list[dict[str, Any]]:
    missed = {"objective": 300.0, "met": False, "coverage": 0.99}
    return [
        week_row(WEEK, "rpo_s", "fleet", median=4.0, p90=None, p99=None, subjects=3, subjects_excluded=1),
        week_row(WEEK, "readiness", "fleet", subjects=0, subjects_excluded=2),
        week_row(WEEK, "rpo_s", "mirror", "a to b", value=None, **missed),
        week_row(WEEK, "rpo_s", "mirror", "c to d", value=412.0, **missed),
        week_row(WEEK, "rpo_s", "mirror", "e to f", value=2.0, objective=300.0, met=True),
        week_row(WEEK, "rpo_s", "mirror", "g to h", value=None, objective=300.0, met=None),
        week_row(WEEK, "rpo_records", "mirror", "a to b", value=8.0),
    ]


def test_a_week_tells_who_missed_and_of_whom_nobody_knows() -> None:
    week = recovery_week(_weeks(), WEEK)
    assert week is not None
    assert (week.closed, week.judged) == (True, 3)
    assert [(one.subject, held(one)) for one in week.missed] == [
        ("a to b", "nobody knows"),
        ("c to d", "6 min 52 s"),
    ]
    readiness, late = week.over
    assert [level(late, value) for value in (late.median, late.p90)] == ["4.0 s", "nobody knows"]
    assert level(readiness, readiness.median) == "–"
    assert recovery_week(_weeks(), WEEK - timedelta(days=7)) is None


def test_the_open_week_is_before_the_closed_one() -> None:
    rows = [
        week_row(WEEK - timedelta(days=7), "rpo_s", "fleet"),
        week_row(WEEK, "rpo_s", "fleet", closed=False),
    ]
    assert [(one.week, one.closed) for one in shown_weeks(rows)] == [(WEEK, False), (date(2026, 2, 23), True)]
    assert shown_weeks([]) == ()


def test_the_objective_is_the_newest_weeks() -> None:
    rows = [
        week_row(WEEK, "rpo_s", "mirror", "a to b", objective=60.0),
        week_row(WEEK - timedelta(days=7), "rpo_s", "mirror", "a to b", objective=300.0),
        week_row(WEEK, "readiness", "group", "g", objective=0.99),
    ]
    assert rpo_objective_s(rows) == 60.0
    assert rpo_objective_s(rows[2:]) is None


def test_levels_have_their_units() -> None:
    assert [
        measured(*one) for one in (("rpo_s_estimate", 0.31), ("rpo_records", 8_400.0), ("readiness", 0.9912))
    ] == [
        "0.4 s",
        "8,400",
        "99.120%",
    ]


def _numbers(objective_s: float | None = None, **changed: Any) -> dict[str, Number]:
    values: dict[str, Any] = {"mirrors": (), "groups": (), "producers": (), "findings": (), "drills": ()}
    found = numbers(Known(**values | changed), TOLD_NOW, objective_s, NOW)
    return {one.definition.removeprefix("recovery_"): one for one in found}


def test_the_worst_rpo_is_a_bound_with_its_estimate_beside_it() -> None:
    mirrors = (mirror("a", behind_s_at_most=9.1, behind_s=2.0), mirror("b", behind_s_at_most=70.0))
    found = _numbers(60.0, mirrors=mirrors)["rpo"]
    assert (found.value, found.verdict) == ("≤ 1 min 10 s", Verdict.MISSED)
    assert found.notes == ("b to south; objective 1 min", "estimated by tracers of 1 of 2: 2.0 s")


def test_a_bound_within_the_objective_is_not_met_while_one_is_not_known() -> None:
    unknown = mirror("b", behind_s_at_most=None, state=MirrorState.UNKNOWN)
    assert _numbers(60.0, mirrors=(mirror("a"),))["rpo"].verdict is Verdict.MET
    found = _numbers(60.0, mirrors=(mirror("a"), unknown))["rpo"]
    assert found.verdict is Verdict.UNKNOWN
    assert "of 1 mirror nobody knows" in found.notes
    assert _numbers(mirrors=(mirror("a"),))["rpo"].verdict is None


def test_what_was_told_long_ago_is_a_note_and_not_the_number() -> None:
    late = {"until": minute(-20)}
    found = _numbers(
        mirrors=(mirror(**late, now=False, state=MirrorState.UNKNOWN),),
        groups=(group(**late), group("h", ready=False, **late)),
    )
    assert [found[name].value for name in ("mirrors", "rpo", "groups")] == ["nobody knows"] * 3
    assert found["rpo"].notes == ("when last told at most 15 s",)
    assert found["groups"].notes == ("when last told 1 of 2 groups",)


def test_of_nothing_no_number_is_made() -> None:
    found = _numbers()
    assert [found[name].value for name in ("mirrors", "rpo", "groups", "findings", "drill")] == [
        "–",
        "–",
        "–",
        "0",
        "never",
    ]


def test_who_is_not_ready_is_named_and_the_rest_counted() -> None:
    groups = [group(name, ready=False) for name in "abcde"] + [group("f")]
    found = _numbers(groups=groups)["groups"]
    assert (found.value, found.notes) == ("1 of 6", ("▲ a", "▲ b", "▲ c", "and 2 more"))


def test_open_findings_are_counted_by_severity() -> None:
    opened = open_findings([finding(START, "A", "a", severity="page"), finding(minute(-9), "B", "b")])
    found = _numbers(findings=opened)["findings"]
    assert (found.value, found.notes) == ("2", ("1 page, 1 ticket", "the oldest for 10 min 30 s"))


def test_the_last_drill_says_whether_it_was_tried() -> None:
    tried = _numbers(drills=drilled([drill(minute(-60), "g", active="a", passive="b")]))["drill"]
    assert (tried.value, tried.notes) == ("● READY", ("1 h 1 min ago by ada, executed", "a to b"))
    forecast = _numbers(drills=drilled([drill(START, "g", executed=False, ready=False)]))["drill"]
    assert forecast.value == "▲ NOT READY"
    assert forecast.notes[0].endswith("forecast alone")
