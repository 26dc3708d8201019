"""Recovery: can we fail over now, what would it cost, and how has that been?"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from dash import html

from fleetgauge_dashboards.figures.over_time import OverTime
from fleetgauge_dashboards.figures.regions import HEIGHT as MAP_HEIGHT
from fleetgauge_dashboards.figures.regions import regions
from fleetgauge_dashboards.figures.rpo import HEIGHT as RPO_HEIGHT
from fleetgauge_dashboards.figures.rpo import rpo as rpo_figure
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import RecoveryView, Window, href
from fleetgauge_dashboards.pages.failover_block import failover_block
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, chart, number_card, panel, switch, table, tools
from fleetgauge_dashboards.pages.recovery_rows import PARTS, recovery_now, rpo_minutes, shown_span
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, count, duration, milliseconds, percent, seconds
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.failover import Failover
from fleetgauge_dashboards.views.groups import GroupNow, in_words
from fleetgauge_dashboards.views.recovery_freshness import Told
from fleetgauge_dashboards.views.recovery_weeks import RecoveryWeek, held, level, measured, named, whose
from fleetgauge_dashboards.views.regions import region_map
from fleetgauge_dashboards.views.rpo import rpo

#: Groups listed, worst first, and groups of drills, newest first; the files have all.
GROUPS, DRILLS = 200, 20


def body() -> list[Component]:
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
                    "Regions and what is copied between them",
                    "regions_map",
                    chart("recovery-regions", MAP_HEIGHT, "Regions, their clusters and mirrors"),
                    tools=tools("recovery", "mirrors", "recovery-regions"),
                ),
                panel(
                    "RPO by minute, log scale",
                    "rpo_trend",
                    chart("recovery-rpo", RPO_HEIGHT, "How far each mirror was behind, by minute"),
                    end=html.Div(id="recovery-window"),
                    tools=tools("recovery", "rpo", "recovery-rpo"),
                ),
                panel(
                    "Groups, worst first",
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
                    "Weeks", "recovery_weeks", html.Div(id="recovery-weeks"), tools=tools("recovery", "weeks")
                ),
            ],
            className="fg-panels",
        ),
    ]


def fill(view: RecoveryView, context: Context, look: Theme) -> Slots | Notice:
    if not context.lake.recovery.is_told_of:
        return _how_to_begin()
    found, times = recovery_now(context), context.times(view)
    minutes = rpo_minutes(view, context)
    span = shown_span(view, found.told, context, minutes)
    over = OverTime(span, times, (), href(view))
    return {
        "recovery-title.children": _title(found.told, times),
        "recovery-stale.children": _stale(found.told, times),
        "recovery-cards.children": [number_card(one) for one in found.numbers],
        "recovery-failovers.children": _failovers(found.failovers, view, times),
        "recovery-regions.figure": regions(region_map(found.mirrors, context.fleet.regions), look),
        "recovery-window.children": _windows(view),
        "recovery-rpo.figure": rpo_figure(rpo(minutes, span, found.objective_s), over, look),
        "recovery-groups.children": _groups(found.groups, times, context),
        "recovery-drills.children": _drills(found.drills, times),
        "recovery-weeks.children": _weeks(found.weeks),
    }


def _how_to_begin() -> Notice:
    return Notice(
        "Nothing is told of another region yet",
        (
            html.Span(
                [
                    "Say under ",
                    html.Code("recovery:"),
                    " in fleet.yaml what MirrorMaker copies between which clusters, and which groups may go "
                    "on where.",
                ]
            ),
            html.Span(
                [
                    "Then start ",
                    html.Code("fleetgauge recover run --config fleet.yaml"),
                    ". This page fills itself with its first minute.",
                ]
            ),
        ),
    )


def _title(told: Told, times: Times) -> list[Component]:
    if told.until is None or told.age is None:
        until = "no minute was told yet"
    else:
        until = f"newest minute ended {times.instant(told.until)}, {duration(told.age)} before this was drawn"
    return [html.H1("Recovery"), html.Span(until, className="fg-sub")]


def _stale(told: Told, times: Times) -> Component:
    if told.is_now:
        return None
    since = f"since {times.instant(told.until)}" if told.until else "yet"
    return html.Div(
        [
            html.Strong(f"▲ STALE: recover run has not told anything {since}."),
            html.Span("Nothing below is about now. Check that fleetgauge recover run runs."),
        ],
        className="fg-banner fg-banner--bad",
        role="alert",
    )


def _failovers(found: Sequence[Failover], view: RecoveryView, times: Times) -> list[Component]:
    if not found:
        said = "No pair of clusters is told of: name groups that may go on elsewhere under recovery.groups."
        return [html.P(said, className="fg-note")]
    return [failover_block(one, view, times) for one in found]


def _windows(view: RecoveryView) -> Component:
    choices = [(f"last {one.value}", replace(view, window=one), one is view.window) for one in Window]
    return switch("Minutes shown", choices)


def _groups(found: Sequence[GroupNow], times: Times, context: Context) -> Component:
    if not found:
        return html.P("No group is told of.", className="fg-note")
    head = (
        "Group",
        "From, to",
        "Ready",
        "Why not",
        "Read again, about",
        "at most",
        "Lost, at most",
        "RTO",
        "So since",
    )
    now = context.clock()
    rows = [
        (
            one.group_id,
            _whole(f"{one.active} to {one.passive}"),
            _ready(one.ready),
            "; ".join(map(in_words, one.reasons)) or NOTHING,
            _records(one.replay),
            _records(one.replay_at_most),
            _lost(one),
            _whole(NOTHING if one.rto_ms is None else seconds(one.rto_ms / 1000)),
            _whole(_since(one, now - one.since, times)),
        )
        for one in found[:GROUPS]
    ]
    return html.Div([table("Groups", head, rows), _more(len(found) - GROUPS)])


def _whole(text: str) -> Component:
    """In one line."""
    return html.Span(text, className="fg-whole")


def _ready(ready: bool | None) -> Component:
    if ready is None:
        return _whole("◌ nobody knows")
    return _whole("● ready") if ready else html.Strong("▲ not ready", className="fg-missed")


def _records(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _lost(one: GroupNow) -> str:
    of = (
        "" if one.lost_s_at_most is None or not one.lost_at_most else f" within {seconds(one.lost_s_at_most)}"
    )
    return f"{_records(one.lost_at_most)}{of}"


def _since(one: GroupNow, lasted: timedelta, times: Times) -> str:
    return f"{times.minute(one.since)}{' or before' if one.or_before else ''}, {duration(lasted)}"


def _drills(found: Sequence[DrilledGroup], times: Times) -> Component:
    if not found:
        command = html.Code("fleetgauge recover drill")
        said: list[Component] = ["No drill is on record: ", command, " forecasts a failover, or tries one."]
        return html.P(said, className="fg-note")
    head = (
        "When",
        "Who",
        "From, to",
        "Group",
        "Kind",
        "Verdict",
        "Read again: forecast",
        "measured",
        "Missing",
        "Decide",
        "Write",
        "First record",
    )
    rows = [
        (
            _whole(times.instant(one.at)),
            one.author,
            _whole(f"{one.active} to {one.passive}"),
            one.group_id,
            "executed" if one.executed else "forecast",
            _verdict(one),
            _records(one.replay_forecast),
            _records(one.replayed),
            _records(one.missing),
            *(_whole(_ms(value)) for value in (one.decide_ms, one.write_ms, one.first_record_ms)),
        )
        for one in found[:DRILLS]
    ]
    return html.Div([table("Drills", head, rows), _more(len(found) - DRILLS)])


def _verdict(one: DrilledGroup) -> Component:
    if one.ready:
        return "● READY"
    why = ", ".join(map(in_words, one.reasons))
    return [html.Strong("▲ NOT READY", className="fg-missed"), f": {why}" if why else ""]


def _ms(value: int | None) -> str:
    return milliseconds(None if value is None else 1000 * value)


def _more(left: int) -> Component:
    return html.P(f"and {left:,} more: the file has them", className="fg-note") if left > 0 else None


def _weeks(found: Sequence[RecoveryWeek]) -> list[Component]:
    if not found:
        return [html.P("No week is computed yet.", className="fg-note")]
    return [_week(one) for one in found]


def _week(week: RecoveryWeek) -> Component:
    standing = "closed" if week.closed else "open, to date"
    return html.Section(
        [
            html.H3(f"Week of {week.week:%a %d %b %Y}, {standing}", className="fg-heading"),
            _over(week),
            _missed(week),
        ],
        className="fg-apart",
    )


def _over(week: RecoveryWeek) -> Component:
    head = ("Metric", "Over", "Median", "p90", "p99", "Counted", "Not counted")
    rows = [
        (
            named(one.metric),
            whose(one.metric),
            *(level(one, value) for value in (one.median, one.p90, one.p99)),
            f"{one.subjects:,}",
            f"{one.subjects_excluded:,}",
        )
        for one in week.over
    ]
    return table(f"Week of {week.week}, over all", head, rows) if rows else None


def _missed(week: RecoveryWeek) -> Component:
    if not week.judged:
        return html.P("Nobody is held to an objective.", className="fg-note")
    if not week.missed:
        return html.P(f"✓ {week.judged:,} of {count(week.judged, 'objective')} kept", className="fg-met")
    head = ("Missed", "Metric", "What", "Value", "Objective", "Coverage")
    rows = [
        (
            html.Strong(f"✕ {one.subject}", className="fg-missed"),
            named(one.metric),
            one.scope,
            held(one),
            measured(one.metric, one.objective),
            percent(one.coverage, 1),
        )
        for one in week.missed
    ]
    said = f"{len(week.missed):,} of {count(week.judged, 'objective')} missed:"
    return html.Div([html.P(said, className="fg-note"), table(f"Week of {week.week}, missed", head, rows)])


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
    body=body,
    fill=fill,
    parts=PARTS,
)
