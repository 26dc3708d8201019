"""Mirrors, groups, findings, drills and weeks as last observed; unknown values stay unknown."""

from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest

from fleetgauge_core import tables
from fleetgauge_dashboards.links import Span, Window
from fleetgauge_dashboards.reader.recovery import RPO_MINUTE_COLUMNS
from fleetgauge_dashboards.views.cluster import KeyFigure, ObjectiveVerdict
from fleetgauge_dashboards.views.drills import parse_drilled_groups, summarize_latest_drill
from fleetgauge_dashboards.views.failover import RecoverySnapshot
from fleetgauge_dashboards.views.findings import fold_open_findings
from fleetgauge_dashboards.views.groups import (
    REASON_TEXTS,
    describe_reason,
    latest_group_readiness,
    sort_groups_worst_first,
)
from fleetgauge_dashboards.views.mirrors import MirrorHealth, latest_mirror_lags
from fleetgauge_dashboards.views.producers import latest_producer_statuses
from fleetgauge_dashboards.views.recovery import recovery_key_figures
from fleetgauge_dashboards.views.recovery_freshness import (
    assess_freshness_at,
    assess_freshness_of_tables,
    select_latest_rows,
)
from fleetgauge_dashboards.views.recovery_weeks import (
    build_recovery_week,
    build_recovery_weeks,
    find_rpo_objective_s,
    format_metric_value,
    format_missed_value,
    format_quantile,
)
from fleetgauge_dashboards.views.rpo import build_rpo_timelines, resolve_rpo_span
from fleetgauge_operations.recovery.plan.forecast import NotReadyReason
from fleetgauge_operations.recovery.plan.sync_decision import SyncVerdict
from tests.browser.recovery_lake import drill, finding, group_minute, mirror_minute, producer_minute, week_row
from tests.unit.dashboards.frames import START, WEEK, frame, minute
from tests.unit.dashboards.recovery_frames import (
    CURRENT,
    NOW,
    UNTIL,
    group,
    group_rows,
    mirror,
    mirror_rows,
    producer_rows,
)

A_TO_B = {"source": "a", "destination": "b"}


def test_freshness_is_that_of_the_newest_minute_in_any_table() -> None:
    mirrors, groups = mirror_rows([mirror_minute("a", "b", minute(-4))]), group_rows([])
    assert assess_freshness_of_tables([mirrors, groups], NOW).until == minute(-3)
    both = [mirrors, group_rows([group_minute("a", "b", "g", START)])]
    assert assess_freshness_of_tables(both, NOW) == CURRENT
    assert assess_freshness_of_tables([groups], NOW) == assess_freshness_at(None, NOW)


def test_an_unknown_value_is_not_replaced_by_an_older_known_one() -> None:
    rows = [
        mirror_minute("a", "b", minute(-1)),
        mirror_minute("a", "b", START, behind_s_at_most=None, silent_s=None),
    ]
    for ordered in permutations(rows):
        (row,) = select_latest_rows(mirror_rows(ordered), ("source", "destination"))
        assert (row["minute"], row["behind_s_at_most"], row["silent_s"]) == (START, None, None)


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, MirrorHealth.FRESH),
        ({"fresh": False}, MirrorHealth.STALE),
        ({"looped": 1}, MirrorHealth.LOOP),
        ({"looped": 1, "fresh": False}, MirrorHealth.LOOP),
        ({"looped": None}, MirrorHealth.FRESH),
        ({"fresh": None}, MirrorHealth.UNKNOWN),
        # A mirror without any partition seen is not stalled but unknown.
        ({"fresh": False, "partitions": 0, "silent_s": None}, MirrorHealth.UNKNOWN),
    ],
)
def test_a_mirrors_state_is_that_of_its_newest_minute(changed: dict[str, Any], state: MirrorHealth) -> None:
    (lag,) = latest_mirror_lags(mirror_rows([mirror_minute("a", "b", START, **changed)]), (), NOW)
    assert (lag.state, lag.now, lag.until) == (state, True, UNTIL)


def test_clusters_that_did_not_answer_are_silent() -> None:
    rows = [mirror_minute("a", "b", START, source_answers=False), mirror_minute("c", "b", START)]
    rows.append(mirror_minute("d", "b", START, source_answers=None, destination_answers=None))
    assert [lag.silent for lag in latest_mirror_lags(mirror_rows(rows), (), NOW)] == [("a",), (), ()]


def test_a_mirror_without_recent_data_is_unknown_even_if_others_have_data() -> None:
    rows = mirror_rows([mirror_minute("a", "b", minute(-5)), mirror_minute("c", "d", START)])
    late, well = latest_mirror_lags(rows, (), NOW)
    assert (late.state, late.now, late.behind_s_at_most) == (MirrorHealth.UNKNOWN, False, 14.2)
    assert well.state is MirrorHealth.FRESH


def test_configured_mirrors_are_listed_even_without_data() -> None:
    rows = mirror_rows([mirror_minute("a", "b", START), mirror_minute("old", "b", START)])
    lags = latest_mirror_lags(rows, (("new", "b"), ("a", "b")), NOW)
    assert [(lag.name, lag.state) for lag in lags] == [
        ("a to b", MirrorHealth.FRESH),
        ("new to b", MirrorHealth.UNKNOWN),
    ]


def test_without_a_fleet_file_a_mirror_without_data_disappears_after_an_hour() -> None:
    rows = [mirror_minute("a", "b", minute(-61)), mirror_minute("c", "d", START)]
    assert [lag.name for lag in latest_mirror_lags(mirror_rows(rows), (), NOW)] == ["c to d"]


def test_each_mirror_state_has_its_own_sign() -> None:
    assert len({lag.sign for lag in MirrorHealth}) == len(MirrorHealth)


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
    assert sort_groups_worst_first(reversed(ordered)) == tuple(ordered)


def _ready(number: int, ready: bool | None, group_id: str = "g", active: str = "a") -> dict[str, Any]:
    return group_minute(active, "b", group_id, minute(number), ready=ready)


def test_readiness_holds_since_it_last_changed() -> None:
    rows = [_ready(number, number >= -7) for number in range(-20, 1)]
    (readiness,) = latest_group_readiness(group_rows(reversed(rows)))
    assert (readiness.ready, readiness.since, readiness.or_before) == (True, minute(-7), False)


def test_readiness_that_never_changed_may_be_older_than_the_data() -> None:
    (readiness,) = latest_group_readiness(group_rows(_ready(number, None) for number in range(-20, 1)))
    assert (readiness.ready, readiness.since, readiness.or_before) == (None, minute(-20), True)


def test_a_long_gap_in_the_data_ends_a_run_of_readiness() -> None:
    numbers_told = [*range(-30, -20), *range(-10, 1)]
    (readiness,) = latest_group_readiness(group_rows(_ready(number, True) for number in numbers_told))
    assert (readiness.since, readiness.or_before) == (minute(-10), False)
    short = [*range(-30, -20), *range(-18, 1)]
    (readiness,) = latest_group_readiness(group_rows(_ready(number, True) for number in short))
    assert readiness.since == minute(-30)


def test_the_history_of_a_group_is_separate_from_other_groups() -> None:
    rows = [_ready(number, number >= -5, "g") for number in range(-20, 1)]
    rows += [_ready(number, True, "h") for number in range(-20, 1)]
    rows += [_ready(number, number >= -2, "g", "c") for number in range(-20, 1)]
    since = {
        (readiness.active, readiness.group_id): readiness.since
        for readiness in latest_group_readiness(group_rows(rows))
    }
    assert since == {("a", "g"): minute(-5), ("a", "h"): minute(-20), ("c", "g"): minute(-2)}


def test_a_group_missing_from_its_pairs_newest_minute_is_left_out() -> None:
    rows = [_ready(-5, False, "gone"), _ready(0, True), _ready(-5, True, "late", "c")]
    assert {readiness.group_id for readiness in latest_group_readiness(group_rows(rows))} == {"g", "late"}


def test_groups_of_a_configured_pair_stay_even_if_other_pairs_have_newer_data() -> None:
    rows = group_rows([_ready(-200, True, "last"), _ready(0, True, "now", "c"), _ready(0, True, "old", "d")])
    assert {readiness.group_id for readiness in latest_group_readiness(rows)} == {"now", "old"}
    assert {readiness.group_id for readiness in latest_group_readiness(rows, (("a", "b"), ("c", "b")))} == {
        "last",
        "now",
    }


def test_without_rows_there_are_no_groups() -> None:
    assert latest_group_readiness(group_rows([])) == ()


def test_known_reasons_have_a_text_and_unknown_ones_are_shown_as_they_are() -> None:
    (readiness,) = latest_group_readiness(
        group_rows([group_minute("a", "b", "g", START, reasons="stale, loss,,brand_new")])
    )
    assert [describe_reason(readiness) for readiness in readiness.reasons] == [
        REASON_TEXTS["stale"],
        REASON_TEXTS["loss"],
        "brand_new",
    ]


def test_every_reason_of_operations_has_a_text() -> None:
    assert {key_figure.value for key_figure in SyncVerdict if not key_figure.is_ok} | {
        key_figure.value for key_figure in NotReadyReason
    } <= set(REASON_TEXTS)


def test_producers_can_produce_or_cannot_or_it_is_unknown() -> None:
    rows = [
        producer_minute("a", START, acknowledged=1),
        producer_minute("b", START, acknowledged=0),
        producer_minute("c", START, sent=1, acknowledged=0),
        producer_minute("d", minute(-5)),
    ]
    statuses = latest_producer_statuses(producer_rows(rows), NOW)
    assert [(status.cluster_id, status.can_produce, status.is_current) for status in statuses] == [
        ("a", True, True),
        ("b", False, True),
        ("c", None, True),
        ("d", True, False),
    ]


def test_a_finding_is_open_until_it_closes_and_keeps_its_first_time() -> None:
    rows = [
        finding(minute(0), "MIRROR_STALE", "a", "b"),
        finding(minute(9), "MIRROR_STALE", "a", "b", summary="reported again"),
        finding(minute(2), "NO_HEADROOM", "b"),
        finding(minute(4), "NO_HEADROOM", "b", opens=False),
        finding(minute(5), "MIRROR_BEHIND", "a", "b", severity="page"),
    ]
    first, second = fold_open_findings(reversed(rows))
    assert (first.kind, first.is_page) == ("MIRROR_BEHIND", True)
    assert (second.since, second.summary, second.is_page) == (minute(0), "reported again", False)


def test_a_finding_that_reopened_counts_from_its_reopening() -> None:
    begun = finding(minute(0), "NO_HEADROOM", "b")
    rows = [begun, begun | {"at": minute(3), "opens": False}, begun | {"at": minute(8)}]
    assert [open_finding.since for open_finding in fold_open_findings(rows)] == [minute(8)]


def test_a_drill_is_ready_if_all_of_its_groups_are() -> None:
    newest = START + timedelta(days=1)
    rows = [drill(START, "a"), drill(newest, "a"), drill(newest, "b", ready=False, executed=False)]
    drilled_groups = parse_drilled_groups(rows)
    assert [(drilled.at, drilled.group_id) for drilled in drilled_groups] == [
        (newest, "a"),
        (newest, "b"),
        (START, "a"),
    ]
    last = summarize_latest_drill(drilled_groups)
    assert last is not None
    assert (last.ready, last.groups, last.verdict, last.executed) == (1, 2, "NOT READY", True)
    assert summarize_latest_drill(()) is None


def _rpo_rows(rows: list[dict[str, Any]]) -> Any:
    return frame(
        tables.MIRROR_MINUTES,
        RPO_MINUTE_COLUMNS,
        [{name: row.get(name) for name in RPO_MINUTE_COLUMNS} for row in rows],
    )


def _behind(
    number: int, at_most: float | None, estimate: float | None = None, source: str = "a"
) -> dict[str, Any]:
    return {
        "source": source,
        "destination": "b",
        "minute": minute(number),
        "behind_s_at_most": at_most,
        "behind_s": estimate,
    }


def test_the_rpo_line_is_interrupted_where_data_is_missing_or_unknown() -> None:
    rows = [_behind(-1, 99.0), _behind(0, 5.0, 0.2), _behind(1, None), _behind(3, 8.0), _behind(9, 99.0)]
    model = build_rpo_timelines(_rpo_rows(rows), Span(START, minute(5)), 300.0)
    (line,) = model.lines
    assert line.at_most == (5.0, None, None, 8.0, None)
    assert line.estimate == (0.2, None, None, None, None)
    assert model.gaps == (Span(minute(1), minute(3)), Span(minute(4), minute(5)))


def test_a_step_known_for_one_mirror_is_not_a_gap_nor_is_time_before_the_first_value() -> None:
    rows = [_behind(2, 5.0), _behind(3, None), _behind(3, 1.0, source="c"), _behind(4, 1.0, source="c")]
    model = build_rpo_timelines(_rpo_rows(rows), Span(START, minute(5)), None)
    assert model.gaps == ()


def test_a_step_shows_its_worst_minute() -> None:
    model = build_rpo_timelines(
        _rpo_rows([_behind(n, float(n)) for n in range(1440)]), Span(START, minute(1440)), None
    )
    assert model.grid.step_min > 1
    (line,) = model.lines
    assert line.at_most[0] == model.grid.step_min - 1
    assert line.peak == 1439.0


def test_without_minutes_there_is_no_line_and_no_gap() -> None:
    model = build_rpo_timelines(_rpo_rows([]), Span(START, minute(5)), None)
    assert (model.lines, model.gaps) == ((), ())


def test_the_span_ends_with_the_data_unless_it_is_stale() -> None:
    first = START - timedelta(days=3)
    assert resolve_rpo_span(Window.DAY, CURRENT, NOW, first) == Span(UNTIL - timedelta(days=1), UNTIL)
    later = NOW + timedelta(minutes=20)
    assert resolve_rpo_span(Window.HOUR, assess_freshness_at(UNTIL, later), later, first).end == minute(22)
    history = NOW + timedelta(days=40)
    assert resolve_rpo_span(Window.HOUR, assess_freshness_at(UNTIL, history), history, first).end == UNTIL
    assert resolve_rpo_span(Window.HOUR, assess_freshness_at(None, NOW), NOW, None).end == minute(2)


def test_the_span_of_a_young_lake_begins_with_its_data_and_stays_legible() -> None:
    assert resolve_rpo_span(Window.WEEK, CURRENT, NOW, minute(-50)).start == minute(-50)
    assert resolve_rpo_span(Window.WEEK, CURRENT, NOW, minute(-2)).start == minute(-14)


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


def test_a_week_lists_missed_objectives_and_unknown_values() -> None:
    week = build_recovery_week(_weeks(), WEEK)
    assert week is not None
    assert (week.closed, week.judged) == (True, 3)
    assert [(missed.subject, format_missed_value(missed)) for missed in week.missed] == [
        ("a to b", "unknown"),
        ("c to d", "6 min 52 s"),
    ]
    readiness, late = week.over
    assert [format_quantile(late, value) for value in (late.median, late.p90)] == ["4.0 s", "unknown"]
    assert format_quantile(readiness, readiness.median) == "–"
    assert build_recovery_week(_weeks(), WEEK - timedelta(days=7)) is None


def test_the_open_week_is_before_the_closed_one() -> None:
    rows = [
        week_row(WEEK - timedelta(days=7), "rpo_s", "fleet"),
        week_row(WEEK, "rpo_s", "fleet", closed=False),
    ]
    assert [(recovery_week.week, recovery_week.closed) for recovery_week in build_recovery_weeks(rows)] == [
        (WEEK, False),
        (date(2026, 2, 23), True),
    ]
    assert build_recovery_weeks([]) == ()


def test_the_objective_of_the_newest_week_applies() -> None:
    rows = [
        week_row(WEEK, "rpo_s", "mirror", "a to b", objective=60.0),
        week_row(WEEK - timedelta(days=7), "rpo_s", "mirror", "a to b", objective=300.0),
        week_row(WEEK, "readiness", "group", "g", objective=0.99),
    ]
    assert find_rpo_objective_s(rows) == 60.0
    assert find_rpo_objective_s(rows[2:]) is None


def test_metric_values_have_their_units() -> None:
    assert [
        format_metric_value(*key_figure)
        for key_figure in (("rpo_s_estimate", 0.31), ("rpo_records", 8_400.0), ("readiness", 0.9912))
    ] == [
        "0.4 s",
        "8,400",
        "99.120%",
    ]


def _key_figures(objective_s: float | None = None, **changed: Any) -> dict[str, KeyFigure]:
    values: dict[str, Any] = {"mirrors": (), "groups": (), "producers": (), "findings": (), "drills": ()}
    figures = recovery_key_figures(RecoverySnapshot(**values | changed), CURRENT, objective_s, NOW)
    return {key_figure.definition.removeprefix("recovery_"): key_figure for key_figure in figures}


def test_the_worst_rpo_is_an_upper_bound_with_its_estimate_as_a_note() -> None:
    mirrors = (mirror("a", behind_s_at_most=9.1, behind_s=2.0), mirror("b", behind_s_at_most=70.0))
    figures = _key_figures(60.0, mirrors=mirrors)["rpo"]
    assert (figures.value, figures.verdict) == ("≤ 1 min 10 s", ObjectiveVerdict.MISSED)
    assert figures.notes == ("b to south; objective 1 min", "estimated by tracers of 1 of 2: 2.0 s")


def test_an_rpo_within_the_objective_is_unknown_while_a_mirror_is_unknown() -> None:
    unknown = mirror("b", behind_s_at_most=None, state=MirrorHealth.UNKNOWN)
    assert _key_figures(60.0, mirrors=(mirror("a"),))["rpo"].verdict is ObjectiveVerdict.MET
    figures = _key_figures(60.0, mirrors=(mirror("a"), unknown))["rpo"]
    assert figures.verdict is ObjectiveVerdict.UNKNOWN
    assert "unknown for 1 mirror" in figures.notes
    assert _key_figures(mirrors=(mirror("a"),))["rpo"].verdict is None


def test_stale_values_are_notes_and_not_key_figures() -> None:
    late = {"until": minute(-20)}
    figures = _key_figures(
        mirrors=(mirror(**late, now=False, state=MirrorHealth.UNKNOWN),),
        groups=(group(**late), group("h", ready=False, **late)),
    )
    assert [figures[name].value for name in ("mirrors", "rpo", "groups")] == ["unknown"] * 3
    assert figures["rpo"].notes == ("last known: at most 15 s",)
    assert figures["groups"].notes == ("last known: 1 of 2 groups",)


def test_without_data_key_figures_are_empty() -> None:
    figures = _key_figures()
    assert [figures[name].value for name in ("mirrors", "rpo", "groups", "findings", "drill")] == [
        "–",
        "–",
        "–",
        "0",
        "never",
    ]


def test_groups_that_are_not_ready_are_listed_up_to_a_limit() -> None:
    groups = [group(name, ready=False) for name in "abcde"] + [group("f")]
    figures = _key_figures(groups=groups)["groups"]
    assert (figures.value, figures.notes) == ("1 of 6", ("▲ a", "▲ b", "▲ c", "and 2 more"))


def test_open_findings_are_counted_by_severity() -> None:
    opened = fold_open_findings([finding(START, "A", "a", severity="page"), finding(minute(-9), "B", "b")])
    figures = _key_figures(findings=opened)["findings"]
    assert (figures.value, figures.notes) == ("2", ("1 page, 1 ticket", "the oldest for 10 min 30 s"))


def test_the_latest_drill_says_whether_it_was_executed() -> None:
    tried = _key_figures(drills=parse_drilled_groups([drill(minute(-60), "g", active="a", passive="b")]))[
        "drill"
    ]
    assert (tried.value, tried.notes) == ("● READY", ("1 h 1 min ago by ada, executed", "a to b"))
    forecast = _key_figures(drills=parse_drilled_groups([drill(START, "g", executed=False, ready=False)]))[
        "drill"
    ]
    assert forecast.value == "▲ NOT READY"
    assert forecast.notes[0].endswith("forecast only")
