"""Alerts: what is open, what was, and on what evidence."""

import json
from dataclasses import replace
from datetime import datetime

from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import AlertsView, ClusterView
from fleetgauge_dashboards.pages.acknowledging import button
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, link
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.units import count, duration, instant
from fleetgauge_dashboards.views.acknowledged import Acknowledged, acknowledged
from fleetgauge_dashboards.views.alerts import Alert, alerts

#: Finished alerts listed, newest first.
HISTORY = 200


def body() -> list[Component]:
    return [
        html.Div(id="alerts-title", className="fg-titlerow"),
        html.Div(id="alerts-said", className="fg-said", role="status"),
        html.Div(id="alerts-open"),
        html.Section(id="alerts-history", className="fg-panel"),
    ]


def fill(view: AlertsView, context: Context, _look: Theme) -> Slots | Notice:
    now = context.clock()
    found = alerts(context.lake.health_events())
    mine = [alert for alert in found if view.cluster_id in (None, alert.cluster_id)]
    unfinished = [alert for alert in mine if alert.cleared is None]
    finished = [alert for alert in mine if alert.cleared is not None]
    opened = sum(1 for alert in unfinished if alert.is_open)
    taken = acknowledged(context.lake.actions())
    return {
        "alerts-title.children": _title(view, opened, len(unfinished) - opened),
        "alerts-open.children": [
            _unfinished(alert, taken.get(alert.alert_id), now, view.fleet) for alert in unfinished
        ]
        or _all_quiet(),
        "alerts-history.children": _history(view, finished),
    }


def _title(view: AlertsView, opened: int, suspected: int) -> list[Component]:
    whose = f" of {view.cluster_id}" if view.cluster_id else ""
    suspicions = f" · {count(suspected, 'suspicion')} not named yet" if suspected else ""
    parts: list[Component] = [
        html.H1(f"Alerts{whose}: {opened} open"),
        html.Span(f"all times UTC{suspicions}", className="fg-sub"),
    ]
    if view.cluster_id:
        parts += [
            link("Alerts of all clusters", AlertsView(fleet=view.fleet)),
            link(f"Cluster {view.cluster_id}", ClusterView(view.cluster_id, fleet=view.fleet)),
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


def _unfinished(alert: Alert, taken: Acknowledged | None, now: datetime, fleet: str | None) -> Component:
    named = alert.is_open
    return html.Section(
        [
            html.H2(f"{'▲' if named else '△ suspected:'} {alert.kind}: {alert.whom}"),
            _facts(
                [
                    f"{'open since' if named else 'first sign'} {instant(alert.opened)}",
                    f"for {duration(alert.lasted(now))}",
                    _took(alert),
                    taken.words if taken else "",
                ],
                alert,
                fleet,
            ),
            button(alert) if named and taken is None else None,
            _changes(alert),
        ],
        className=f"fg-panel fg-alert{'' if named else ' fg-alert--suspect'}",
        role="alert" if named else "status",
    )


def _took(alert: Alert) -> str:
    if alert.named is None or alert.opened == alert.began:
        return ""
    return f"named {duration(alert.opened - alert.began)} after the first sign"


def _facts(facts: list[str], alert: Alert, fleet: str | None) -> Component:
    return html.Div(
        [
            *(html.Span(fact) for fact in facts if fact),
            html.Span(["fingerprint ", html.Code(alert.changes[0].fingerprint)]),
            link("Show the cluster then", alert.view(fleet)),
            link(f"Alerts of {alert.cluster_id}", AlertsView(alert.cluster_id, fleet=fleet)),
        ],
        className="fg-facts",
    )


def _changes(alert: Alert) -> Component:
    return html.Div([_change(change) for change in alert.changes], className="fg-changes")


def _change(change: HealthEvent) -> Component:
    return html.Div(
        [
            html.Div(f"{instant(change.at)}: {change.from_state} → {change.to_state}", className="fg-note"),
            html.Pre(pretty(change.evidence), className="fg-json", tabIndex=0),
        ]
    )


def pretty(evidence: str) -> str:
    """JSON indented; what is not JSON as it came."""
    try:
        return json.dumps(json.loads(evidence), indent=2, ensure_ascii=False)
    except ValueError:
        return evidence


def _history(view: AlertsView, finished: list[Alert]) -> list[Component]:
    heading = html.H2("History, newest first", className="fg-heading")
    if not finished:
        return [heading, html.P("No alert has ended yet.", className="fg-note")]
    head = html.Tr([html.Th(title) for title in ("Kind", "Who", "Opened", "Cleared", "Lasted", "")])
    rows = [row for alert in finished[:HISTORY] for row in _finished(view, alert)]
    return [heading, html.Table([html.Thead(head), html.Tbody(rows)], className="fg-table")]


def _finished(view: AlertsView, alert: Alert) -> list[Component]:
    opened = alert.alert_id == view.alert_id
    other = replace(view, alert_id=None if opened else alert.alert_id)
    cleared = alert.cleared or alert.opened
    row = html.Tr(
        [
            html.Td(alert.kind),
            html.Td(alert.whom),
            html.Td(instant(alert.opened)),
            html.Td(instant(cleared)),
            html.Td(duration(cleared - alert.opened)),
            html.Td(
                [
                    link("Hide evidence ▴" if opened else "Evidence ▾", other),
                    " · ",
                    link("Show the cluster then", alert.view(view.fleet)),
                ]
            ),
        ]
    )
    if not opened:
        return [row]
    return [row, html.Tr(html.Td([_facts([_took(alert)], alert, view.fleet), _changes(alert)], colSpan=6))]


PAGE = Page(
    name="alerts",
    view=AlertsView,
    slots=("alerts-title.children", "alerts-open.children", "alerts-history.children"),
    body=body,
    fill=fill,
)
