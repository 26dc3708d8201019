"""Alerts: what is open, what was, and on what evidence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import AlertsView, ClusterView, Lens
from fleetgauge_dashboards.pages.alert_actions import acknowledge_button, judge_buttons
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import Component, link, number_card, panel, tools
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, count, duration
from fleetgauge_dashboards.views.alert_week import alert_week, numbers
from fleetgauge_dashboards.views.alerts import Alert, alerts
from fleetgauge_dashboards.views.remarks import Remark, acknowledged, judged

#: Finished alerts listed, newest first.
HISTORY = 200


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of alerts: by people, and whose clock and links say it."""

    now: datetime
    times: Times
    lens: Lens
    acknowledged: Mapping[str, Remark]
    judged: Mapping[str, Remark]

    def remarks(self, alert: Alert) -> list[str]:
        both = (self.acknowledged.get(alert.alert_id), self.judged.get(alert.alert_id))
        return [one.words(self.times) for one in both if one]


def body() -> list[Component]:
    return [
        html.Div(id="alerts-title", className="fg-titlerow"),
        html.Div(id="alerts-cards", className="fg-cards"),
        html.Div(id="alerts-said", className="fg-said", role="status"),
        html.Div(id="alerts-open"),
        panel(
            "History, newest first",
            "alert_history",
            html.Div(id="alerts-history"),
            class_name="fg-apart",
            tools=tools("alerts", "alerts"),
        ),
    ]


def fill(view: AlertsView, context: Context, _look: Theme) -> Slots | Notice:
    now = context.clock()
    mine = _mine(view, context)
    if view.alert_id is not None and not any(alert.alert_id == view.alert_id for alert in mine):
        return _no_alert(view)
    actions = context.lake.actions()
    told = _Told(now, context.times(view), view.lens, acknowledged(actions), judged(actions))
    unfinished = [alert for alert in mine if alert.cleared is None]
    finished = [alert for alert in mine if alert.cleared is not None]
    opened = sum(1 for alert in unfinished if alert.is_open)
    week = alert_week(mine, told.judged, told.acknowledged, context.fleet.calendar.of(now))
    return {
        "alerts-title.children": _title(view, opened, len(unfinished) - opened),
        "alerts-cards.children": [number_card(one) for one in numbers(week)],
        "alerts-open.children": [_unfinished(alert, told) for alert in unfinished] or _all_quiet(),
        "alerts-history.children": _history(view, finished, told),
    }


def _no_alert(view: AlertsView) -> Notice:
    whose = f" of {view.cluster_id}" if view.cluster_id else ""
    every = link(f"Show all alerts{whose}", replace(view, alert_id=None))
    said = "Its events are not in the lake: they are of another one, or were taken out of it."
    return Notice(f"No alert {view.alert_id}{whose}", (said, every))


def _mine(view: AlertsView, context: Context) -> list[Alert]:
    """Newest first."""
    found = alerts(context.lake.health_events())
    return [alert for alert in found if view.cluster_id in (None, alert.cluster_id)]


def _title(view: AlertsView, opened: int, suspected: int) -> list[Component]:
    whose = f" of {view.cluster_id}" if view.cluster_id else ""
    suspicions = f"{count(suspected, 'suspicion')} not named yet" if suspected else ""
    parts: list[Component] = [
        html.H1(f"Alerts{whose}: {opened} open"),
        html.Span(suspicions, className="fg-sub"),
    ]
    if view.cluster_id:
        parts += [
            link("Alerts of all clusters", AlertsView(lens=view.lens)),
            link(f"Cluster {view.cluster_id}", ClusterView(view.cluster_id, lens=view.lens)),
        ]
    return parts


def _all_quiet() -> Component:
    return html.Section(
        html.P(
            "● No open alert. This says that nothing was named, not that everything was measured: "
            "look at the data's age and coverage above."
        ),
        className="fg-panel",
    )


def _unfinished(alert: Alert, told: _Told) -> Component:
    named = alert.is_open
    facts = [
        f"{'open since' if named else 'first sign'} {told.times.instant(alert.opened)}",
        f"for {duration(alert.lasted(told.now))}",
        _took(alert),
        *told.remarks(alert),
    ]
    return html.Section(
        [
            html.H2(f"{'▲' if named else '△ suspected:'} {alert.kind}: {alert.whom}"),
            _facts(facts, alert, told),
            acknowledge_button(alert) if named and alert.alert_id not in told.acknowledged else None,
            _changes(alert, told.times),
        ],
        className=f"fg-panel fg-alert{'' if named else ' fg-alert--suspect'}",
        role="alert" if named else "status",
    )


def _took(alert: Alert) -> str:
    if alert.named is None or alert.opened == alert.began:
        return ""
    return f"named {duration(alert.opened - alert.began)} after the first sign"


def _facts(facts: list[str], alert: Alert, told: _Told) -> Component:
    return html.Div(
        [
            *(html.Span(fact) for fact in facts if fact),
            html.Span(["fingerprint ", html.Code(alert.changes[0].fingerprint)]),
            link("Show the cluster then", alert.view(told.lens)),
            link(f"Alerts of {alert.cluster_id}", AlertsView(alert.cluster_id, lens=told.lens)),
        ],
        className="fg-facts",
    )


def _changes(alert: Alert, times: Times) -> Component:
    return html.Div([_change(change, times) for change in alert.changes], className="fg-changes")


def _change(change: HealthEvent, times: Times) -> Component:
    return html.Div(
        [
            html.Div(
                f"{times.instant(change.at)}: {change.from_state} → {change.to_state}", className="fg-note"
            ),
            html.Pre(pretty(change.evidence), className="fg-json", tabIndex=0),
        ]
    )


def pretty(evidence: str) -> str:
    """JSON indented; what is not JSON as it came."""
    try:
        return json.dumps(json.loads(evidence), indent=2, ensure_ascii=False)
    except ValueError:
        return evidence


def _history(view: AlertsView, finished: list[Alert], told: _Told) -> list[Component]:
    if not finished:
        return [html.P("No alert has ended yet.", className="fg-note")]
    titles = ("Kind", "Who", "Opened", "Cleared", "Lasted", "Judged", "")
    head = html.Tr([html.Th(title, scope="col") for title in titles])
    asked = [alert for alert in finished[HISTORY:] if alert.alert_id == view.alert_id]
    rows = [row for alert in [*asked, *finished[:HISTORY]] for row in _finished(view, alert, told)]
    listed = html.Table([html.Thead(head), html.Tbody(rows)], className="fg-table")
    more = len(finished) - HISTORY
    return [
        listed,
        html.P(f"and {more:,} older ones: the file has them", className="fg-note") if more > 0 else None,
    ]


def _finished(view: AlertsView, alert: Alert, told: _Told) -> list[Component]:
    opened = alert.alert_id == view.alert_id
    other = replace(view, alert_id=None if opened else alert.alert_id)
    cleared = alert.cleared or alert.opened
    judgement = told.judged.get(alert.alert_id)
    cells: list[Component] = [
        alert.kind,
        alert.whom,
        told.times.instant(alert.opened),
        told.times.instant(cleared),
        duration(cleared - alert.opened),
        judgement.judgement.words if judgement and judgement.judgement else NOTHING,
        [
            link("Hide evidence ▴" if opened else "Evidence ▾", other),
            " · ",
            link("Show the cluster then", alert.view(view.lens)),
        ],
    ]
    row = html.Tr([html.Td(cell) for cell in cells])
    if not opened:
        return [row]
    facts = _facts([_took(alert), *told.remarks(alert)], alert, told)
    more = [facts, html.Div(judge_buttons(alert), className="fg-buttons"), _changes(alert, told.times)]
    return [row, html.Tr(html.Td(more, colSpan=len(cells)))]


def _rows(view: AlertsView, context: Context) -> Rows:
    """One line an alert, newest first."""
    actions = context.lake.actions()
    taken, right = acknowledged(actions), judged(actions)
    columns = (
        "alert_id",
        "kind",
        "cluster_id",
        "broker_id",
        "first_sign",
        "named",
        "cleared",
        "acknowledged_by",
        "judged",
    )
    lines = [
        (
            alert.alert_id,
            alert.kind,
            alert.cluster_id,
            alert.broker_id,
            alert.began,
            alert.named.at if alert.named else None,
            alert.cleared,
            taken[alert.alert_id].author if alert.alert_id in taken else None,
            right[alert.alert_id].judgement if alert.alert_id in right else None,
        )
        for alert in _mine(view, context)
    ]
    return Rows(columns, [dict(zip(columns, one, strict=True)) for one in lines])


PAGE = Page(
    name="alerts",
    view=AlertsView,
    slots=(
        "alerts-title.children",
        "alerts-cards.children",
        "alerts-open.children",
        "alerts-history.children",
    ),
    body=body,
    fill=fill,
    parts=(Part("alerts", "Alerts", _rows),),
)
