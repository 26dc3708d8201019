"""The page of recovery: readiness for a failover, RPO, consumer groups, drills and weekly objectives."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from dash import html

from fleetgauge_dashboards.figures.regions import HEIGHT as MAP_HEIGHT
from fleetgauge_dashboards.figures.regions import plot_region_map
from fleetgauge_dashboards.figures.rpo import HEIGHT as RPO_HEIGHT
from fleetgauge_dashboards.figures.rpo import plot_rpo as rpo_figure
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.time_series import ChartContext
from fleetgauge_dashboards.links import RecoveryView, Window, href
from fleetgauge_dashboards.pages.components import (
    Component,
    chart,
    key_figure_card,
    link_switch,
    panel,
    table,
    tools,
)
from fleetgauge_dashboards.pages.failover_block import failover_block
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, Slots
from fleetgauge_dashboards.pages.recovery_rows import PARTS, read_overview, read_rpo_minutes, resolve_span
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import (
    NO_VALUE,
    format_count,
    format_duration,
    format_milliseconds,
    format_number,
    format_percent,
    format_seconds,
)
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.failover import FailoverAssessment
from fleetgauge_dashboards.views.groups import GroupReadiness, describe_reason
from fleetgauge_dashboards.views.recovery_freshness import RecoveryFreshness
from fleetgauge_dashboards.views.recovery_weeks import (
    RecoveryWeek,
    format_metric_value,
    format_missed_value,
    format_quantile,
    metric_label,
    subject_kind,
)
from fleetgauge_dashboards.views.regions import lay_out_region_map
from fleetgauge_dashboards.views.rpo import build_rpo_timelines

#: Rows of the tables of groups, worst first, and drills, newest first; the CSV files have all.
MAX_GROUPS, MAX_DRILLS = 200, 20


def build_body() -> list[Component]:
    """Return the page's layout."""
    return [
        html.Div(id="recovery-title", className="fg-titlerow"),
        html.Div(id="recovery-stale"),
        html.Div(id="recovery-cards", className="fg-cards"),
        html.Div(
            [
                panel(
                    "Fail over now?",
                    "failover",
                    html.Div(id="recovery-failovers", className="fg-failovers"),
                    tools=tools("recovery", "failovers"),
                ),
                panel(
                    "Regions and mirrors",
                    "regions_map",
                    chart("recovery-regions", MAP_HEIGHT, "Regions, their clusters and mirrors"),
                    tools=tools("recovery", "mirrors", "recovery-regions"),
                ),
                panel(
                    "RPO by minute, log scale",
                    "rpo_trend",
                    chart("recovery-rpo", RPO_HEIGHT, "RPO of each mirror by minute"),
                    end=html.Div(id="recovery-window"),
                    tools=tools("recovery", "rpo", "recovery-rpo"),
                ),
                panel(
                    "Consumer groups, worst first",
                    "recovery_groups",
                    html.Div(id="recovery-groups"),
                    tools=tools("recovery", "groups"),
                ),
                panel(
                    "Drills, newest first",
                    "drills",
                    html.Div(id="recovery-drills"),
                    tools=tools("recovery", "drills"),
                ),
                panel(
                    "Weekly objectives",
                    "recovery_weeks",
                    html.Div(id="recovery-weeks"),
                    tools=tools("recovery", "weeks"),
                ),
            ],
            className="fg-panels",
        ),
    ]


def fill(view: RecoveryView, context: PageContext, theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice while there is no recovery data."""
    if not context.lake.recovery.has_rows:
        return _no_recovery_data()
    overview, times = read_overview(context), context.time_format(view)
    minutes = read_rpo_minutes(view, context)
    span = resolve_span(view, overview.freshness, context, minutes)
    chart_context = ChartContext(span, times, (), href(view))
    return {
        "recovery-title.children": _title_row(overview.freshness, times),
        "recovery-stale.children": _stale_banner(overview.freshness, times),
        "recovery-cards.children": [key_figure_card(figure) for figure in overview.key_figures],
        "recovery-failovers.children": _failover_blocks(overview.failovers, view, times),
        "recovery-regions.figure": plot_region_map(
            lay_out_region_map(overview.mirrors, context.fleet.regions), theme
        ),
        "recovery-window.children": _window_switch(view),
        "recovery-rpo.figure": rpo_figure(
            build_rpo_timelines(minutes, span, overview.objective_s), chart_context, theme
        ),
        "recovery-groups.children": _groups_table(overview.groups, times, context),
        "recovery-drills.children": _drills_table(overview.drills, times),
        "recovery-weeks.children": _week_sections(overview.weeks),
    }


def _no_recovery_data() -> PageNotice:
    return PageNotice(
        "No recovery data yet",
        (
            html.Span(
                [
                    "Configure under ",
                    html.Code("recovery:"),
                    " in fleet.yaml which clusters MirrorMaker replicates, and in which cluster consumer "
                    "groups can "
                    "continue.",
                ]
            ),
            html.Span(
                [
                    "Then start ",
                    html.Code("fleetgauge recover run --config fleet.yaml"),
                    ". This page updates with the first minute of data.",
                ]
            ),
        ),
    )


def _title_row(freshness: RecoveryFreshness, times: TimeFormat) -> list[Component]:
    if freshness.until is None or freshness.age is None:
        text = "no data yet"
    else:
        text = (
            f"newest minute ended {times.format_instant(freshness.until)}, {format_duration(freshness.age)} "
            "before this page was rendered"
        )
    return [html.H1("Recovery"), html.Span(text, className="fg-sub")]


def _stale_banner(freshness: RecoveryFreshness, times: TimeFormat) -> Component:
    if freshness.is_now:
        return None
    since = f"since {times.format_instant(freshness.until)}" if freshness.until else "yet"
    return html.Div(
        [
            html.Strong(f"▲ STALE: no data from fleetgauge recover run {since}."),
            html.Span("The values below are not current. Check that fleetgauge recover run is running."),
        ],
        className="fg-banner fg-banner--bad",
        role="alert",
    )


def _failover_blocks(
    failovers: Sequence[FailoverAssessment], view: RecoveryView, times: TimeFormat
) -> list[Component]:
    if not failovers:
        advice = (
            "No pair of clusters is configured: list consumer groups under recovery.groups in fleet.yaml."
        )
        return [html.P(advice, className="fg-note")]
    return [failover_block(assessment, view, times) for assessment in failovers]


def _window_switch(view: RecoveryView) -> Component:
    choices = [
        (f"last {window.value}", replace(view, window=window), window is view.window) for window in Window
    ]
    return link_switch("Time range", choices)


def _groups_table(groups: Sequence[GroupReadiness], times: TimeFormat, context: PageContext) -> Component:
    if not groups:
        return html.P("No consumer group has been reported.", className="fg-note")
    headings = (
        "Group",
        "Clusters",
        "Ready",
        "Reasons",
        "Read again, estimate",
        "Read again, at most",
        "Lost, at most",
        "RTO",
        "State since",
    )
    now = context.clock()
    rows = [
        (
            group.group_id,
            _one_line(f"{group.active} to {group.passive}"),
            _format_readiness(group.ready),
            "; ".join(map(describe_reason, group.reasons)) or NO_VALUE,
            format_number(group.replay),
            format_number(group.replay_at_most),
            _format_loss(group),
            _one_line(NO_VALUE if group.rto_ms is None else format_seconds(group.rto_ms / 1000)),
            _one_line(_format_since(group, now - group.since, times)),
        )
        for group in groups[:MAX_GROUPS]
    ]
    return html.Div([table("Groups", headings, rows), _format_rest(len(groups) - MAX_GROUPS)])


def _one_line(text: str) -> Component:
    """Return a text that does not wrap."""
    return html.Span(text, className="fg-whole")


def _format_readiness(is_ready: bool | None) -> Component:
    if is_ready is None:
        return _one_line("◌ unknown")
    return _one_line("● ready") if is_ready else html.Strong("▲ not ready", className="fg-missed")


def _format_loss(group: GroupReadiness) -> str:
    period = (
        ""
        if group.lost_s_at_most is None or not group.lost_at_most
        else f" within {format_seconds(group.lost_s_at_most)}"
    )
    return f"{format_number(group.lost_at_most)}{period}"


def _format_since(group: GroupReadiness, lasted: timedelta, times: TimeFormat) -> str:
    earlier = " or earlier" if group.or_before else ""
    return f"{times.format_minute(group.since)}{earlier}, {format_duration(lasted)}"


def _drills_table(drills: Sequence[DrilledGroup], times: TimeFormat) -> Component:
    if not drills:
        command = html.Code("fleetgauge recover drill")
        advice: list[Component] = [
            "No drill has been recorded: ",
            command,
            " forecasts or executes a failover.",
        ]
        return html.P(advice, className="fg-note")
    headings = (
        "When",
        "Author",
        "Clusters",
        "Group",
        "Kind",
        "Verdict",
        "Read again, forecast",
        "Read again, measured",
        "Missing",
        "Decide",
        "Write",
        "First record",
    )
    rows = [
        (
            _one_line(times.format_instant(drill.at)),
            drill.author,
            _one_line(f"{drill.active} to {drill.passive}"),
            drill.group_id,
            "executed" if drill.executed else "forecast",
            _format_verdict(drill),
            format_number(drill.replay_forecast),
            format_number(drill.replayed),
            format_number(drill.missing),
            *(
                _one_line(_format_duration_ms(value))
                for value in (drill.decide_ms, drill.write_ms, drill.first_record_ms)
            ),
        )
        for drill in drills[:MAX_DRILLS]
    ]
    return html.Div([table("Drills", headings, rows), _format_rest(len(drills) - MAX_DRILLS)])


def _format_verdict(drill: DrilledGroup) -> Component:
    if drill.ready:
        return "● READY"
    reasons = ", ".join(map(describe_reason, drill.reasons))
    return [html.Strong("▲ NOT READY", className="fg-missed"), f": {reasons}" if reasons else ""]


def _format_duration_ms(value: int | None) -> str:
    return format_milliseconds(None if value is None else 1000 * value)


def _format_rest(count: int) -> Component:
    return html.P(f"and {count:,} more: see the CSV file", className="fg-note") if count > 0 else None


def _week_sections(weeks: Sequence[RecoveryWeek]) -> list[Component]:
    if not weeks:
        return [html.P("No week has been computed yet.", className="fg-note")]
    return [_week_section(week) for week in weeks]


def _week_section(week: RecoveryWeek) -> Component:
    state = "closed" if week.closed else "open, to date"
    return html.Section(
        [
            html.H3(f"Week of {week.week:%a %d %b %Y}, {state}", className="fg-heading"),
            _quantiles_table(week),
            _missed_objectives(week),
        ],
        className="fg-apart",
    )


def _quantiles_table(week: RecoveryWeek) -> Component:
    headings = ("Metric", "Over", "Median", "p90", "p99", "Included", "Excluded")
    rows = [
        (
            metric_label(quantiles.metric),
            subject_kind(quantiles.metric),
            *(
                format_quantile(quantiles, value)
                for value in (quantiles.median, quantiles.p90, quantiles.p99)
            ),
            f"{quantiles.subjects:,}",
            f"{quantiles.subjects_excluded:,}",
        )
        for quantiles in week.over
    ]
    return table(f"Week of {week.week}, quantiles", headings, rows) if rows else None


def _missed_objectives(week: RecoveryWeek) -> Component:
    if not week.judged:
        return html.P("No objective is configured.", className="fg-note")
    if not week.missed:
        return html.P(
            f"✓ {week.judged:,} of {format_count(week.judged, 'objective')} met", className="fg-met"
        )
    headings = ("Missed by", "Metric", "Scope", "Value", "Objective", "Coverage")
    rows = [
        (
            html.Strong(f"✕ {missed.subject}", className="fg-missed"),
            metric_label(missed.metric),
            missed.scope,
            format_missed_value(missed),
            format_metric_value(missed.metric, missed.objective),
            format_percent(missed.coverage, 1),
        )
        for missed in week.missed
    ]
    summary = f"{len(week.missed):,} of {format_count(week.judged, 'objective')} missed:"
    return html.Div(
        [html.P(summary, className="fg-note"), table(f"Week of {week.week}, missed", headings, rows)]
    )


PAGE = Page(
    name="recovery",
    view=RecoveryView,
    slots=(
        "recovery-title.children",
        "recovery-stale.children",
        "recovery-cards.children",
        "recovery-failovers.children",
        "recovery-regions.figure",
        "recovery-window.children",
        "recovery-rpo.figure",
        "recovery-groups.children",
        "recovery-drills.children",
        "recovery-weeks.children",
    ),
    build_body=build_body,
    fill=fill,
    parts=PARTS,
)
