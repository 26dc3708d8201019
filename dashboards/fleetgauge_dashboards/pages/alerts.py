"""The page of alerts: open ones, suspicions and cleared ones, with their evidence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from dash import html

from fleetgauge_core.contract import HealthEvent
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import AlertsView, ClusterView, DisplayOptions
from fleetgauge_dashboards.pages.alert_actions import (
    acknowledge_button,
    are_remarks_read_only,
    judge_buttons,
    read_only_reason,
)
from fleetgauge_dashboards.pages.components import Component, key_figure_card, link, panel, tools
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import NO_VALUE, format_count, format_duration
from fleetgauge_dashboards.views.alert_remarks import AlertRemark, select_acknowledgements, select_judgements
from fleetgauge_dashboards.views.alert_week import alert_key_figures, summarize_alert_week
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts

#: Cleared alerts in the history, newest first; the CSV file has all.
MAX_HISTORY = 200


@dataclass(frozen=True, slots=True)
class _AlertsContext:
    """What every alert on the page is rendered with: the time, the display options and operators' remarks.

    With ``is_read_only`` no remarks can be added.
    """

    now: datetime
    times: TimeFormat
    display: DisplayOptions
    acknowledgements: Mapping[str, AlertRemark]
    judgements: Mapping[str, AlertRemark]
    is_read_only: bool

    def describe_remarks(self, alert: HealthAlert) -> list[str]:
        remarks = (self.acknowledgements.get(alert.alert_id), self.judgements.get(alert.alert_id))
        return [remark.describe(self.times) for remark in remarks if remark]


def build_body() -> list[Component]:
    """Return the page's layout."""
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


def fill(view: AlertsView, context: PageContext, _theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice if the URL's alert does not exist."""
    now = context.clock()
    selected = _select_alerts(view, context)
    if view.alert_id is not None and not any(alert.alert_id == view.alert_id for alert in selected):
        return _alert_not_found(view)
    actions = context.lake.actions()
    alerts_context = _AlertsContext(
        now,
        context.time_format(view),
        view.display,
        select_acknowledgements(actions),
        select_judgements(actions),
        are_remarks_read_only(context),
    )
    uncleared = [alert for alert in selected if alert.cleared_at is None]
    cleared = [alert for alert in selected if alert.cleared_at is not None]
    open_count = sum(1 for alert in uncleared if alert.is_open)
    week = summarize_alert_week(
        selected,
        alerts_context.judgements,
        alerts_context.acknowledgements,
        context.fleet.calendar.week_at(now),
    )
    return {
        "alerts-title.children": [
            *_title_row(view, open_count, len(uncleared) - open_count),
            read_only_reason() if alerts_context.is_read_only else None,
        ],
        "alerts-cards.children": [key_figure_card(figure) for figure in alert_key_figures(week)],
        "alerts-open.children": [_uncleared_alert(alert, alerts_context) for alert in uncleared]
        or _no_open_alert(),
        "alerts-history.children": _history_table(view, cleared, alerts_context),
    }


def _alert_not_found(view: AlertsView) -> PageNotice:
    of_cluster = f" of {view.cluster_id}" if view.cluster_id else ""
    all_alerts = link(f"Show all alerts{of_cluster}", replace(view, alert_id=None))
    reason = "Its events are not in this lake: they belong to another lake, or were deleted."
    return PageNotice(f"No alert with id {view.alert_id}{of_cluster}", (reason, all_alerts))


def _select_alerts(view: AlertsView, context: PageContext) -> list[HealthAlert]:
    """Return the alerts of the view's cluster or of all clusters, newest first."""
    all_alerts = fold_alerts(context.lake.health_events())
    return [alert for alert in all_alerts if view.cluster_id in (None, alert.cluster_id)]


def _title_row(view: AlertsView, open_count: int, suspected_count: int) -> list[Component]:
    of_cluster = f" of {view.cluster_id}" if view.cluster_id else ""
    suspicions = f"{format_count(suspected_count, 'suspicion')}, not confirmed" if suspected_count else ""
    parts: list[Component] = [
        html.H1(f"Alerts{of_cluster}: {open_count} open"),
        html.Span(suspicions, className="fg-sub"),
    ]
    if view.cluster_id:
        parts += [
            link("Alerts of all clusters", AlertsView(display=view.display)),
            link(f"Cluster {view.cluster_id}", ClusterView(view.cluster_id, display=view.display)),
        ]
    return parts


def _no_open_alert() -> Component:
    return html.Section(
        html.P(
            "● No open alert. This means that no problem was detected, not that everything was measured: "
            "check the data's age and coverage above."
        ),
        className="fg-panel",
    )


def _uncleared_alert(alert: HealthAlert, alerts_context: _AlertsContext) -> Component:
    is_open = alert.is_open
    facts = [
        f"{'open since' if is_open else 'first sign'} {alerts_context.times.format_instant(alert.opened_at)}",
        f"for {format_duration(alert.duration(alerts_context.now))}",
        _describe_detection(alert),
        *alerts_context.describe_remarks(alert),
    ]
    return html.Section(
        [
            html.H2(f"{'▲' if is_open else '△ suspected:'} {alert.kind}: {alert.subject}"),
            _fact_row(facts, alert, alerts_context),
            acknowledge_button(alert, alerts_context.is_read_only)
            if is_open and alert.alert_id not in alerts_context.acknowledgements
            else None,
            _state_changes(alert, alerts_context.times),
        ],
        className=f"fg-panel fg-alert{'' if is_open else ' fg-alert--suspect'}",
        role="alert" if is_open else "status",
    )


def _describe_detection(alert: HealthAlert) -> str:
    if alert.opening_event is None or alert.opened_at == alert.first_sign_at:
        return ""
    return f"opened {format_duration(alert.opened_at - alert.first_sign_at)} after the first sign"


def _fact_row(facts: list[str], alert: HealthAlert, alerts_context: _AlertsContext) -> Component:
    return html.Div(
        [
            *(html.Span(fact) for fact in facts if fact),
            html.Span(["fingerprint ", html.Code(alert.events[0].fingerprint)]),
            link("Cluster at that time", alert.view(alerts_context.display)),
            link(
                f"Alerts of {alert.cluster_id}", AlertsView(alert.cluster_id, display=alerts_context.display)
            ),
        ],
        className="fg-facts",
    )


def _state_changes(alert: HealthAlert, times: TimeFormat) -> Component:
    return html.Div([_state_change(change, times) for change in alert.events], className="fg-changes")


def _state_change(change: HealthEvent, times: TimeFormat) -> Component:
    return html.Div(
        [
            html.Div(
                f"{times.format_instant(change.at)}: {change.from_state} → {change.to_state}",
                className="fg-note",
            ),
            html.Pre(format_evidence(change.evidence), className="fg-json", tabIndex=0),
        ]
    )


def format_evidence(evidence: str) -> str:
    """Return JSON evidence indented, and other text unchanged."""
    try:
        return json.dumps(json.loads(evidence), indent=2, ensure_ascii=False)
    except ValueError:
        return evidence


def _history_table(
    view: AlertsView, cleared: list[HealthAlert], alerts_context: _AlertsContext
) -> list[Component]:
    if not cleared:
        return [html.P("No alert has cleared yet.", className="fg-note")]
    headings = ("Kind", "Where", "Opened", "Cleared", "Duration", "Judgement", "")
    header = html.Tr([html.Th(heading, scope="col") for heading in headings])
    requested = [alert for alert in cleared[MAX_HISTORY:] if alert.alert_id == view.alert_id]
    rows = [
        row
        for alert in [*requested, *cleared[:MAX_HISTORY]]
        for row in _history_rows(view, alert, alerts_context)
    ]
    history = html.Table([html.Thead(header), html.Tbody(rows)], className="fg-table")
    more = len(cleared) - MAX_HISTORY
    return [
        history,
        html.P(f"and {more:,} older alerts: see the CSV file", className="fg-note") if more > 0 else None,
    ]


def _history_rows(view: AlertsView, alert: HealthAlert, alerts_context: _AlertsContext) -> list[Component]:
    is_expanded = alert.alert_id == view.alert_id
    toggled = replace(view, alert_id=None if is_expanded else alert.alert_id)
    cleared = alert.cleared_at or alert.opened_at
    judgement = alerts_context.judgements.get(alert.alert_id)
    cells: list[Component] = [
        alert.kind,
        alert.subject,
        alerts_context.times.format_instant(alert.opened_at),
        alert.format_end(alerts_context.times),
        format_duration(cleared - alert.opened_at),
        judgement.judgement.label if judgement and judgement.judgement else NO_VALUE,
        [
            link("Hide evidence ▴" if is_expanded else "Evidence ▾", toggled),
            " · ",
            link("Cluster at that time", alert.view(view.display)),
        ],
    ]
    row = html.Tr([html.Td(cell) for cell in cells])
    if not is_expanded:
        return [row]
    facts = _fact_row(
        [_describe_detection(alert), *alerts_context.describe_remarks(alert)], alert, alerts_context
    )
    details = [
        facts,
        html.Div(judge_buttons(alert, alerts_context.is_read_only), className="fg-buttons"),
        _state_changes(alert, alerts_context.times),
    ]
    return [row, html.Tr(html.Td(details, colSpan=len(cells)))]


def _read_rows(view: AlertsView, context: PageContext) -> TableRows:
    """Return one row per alert, newest first."""
    actions = context.lake.actions()
    acknowledgements, judgements = select_acknowledgements(actions), select_judgements(actions)
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
        "removed",
    )
    rows = [
        (
            alert.alert_id,
            alert.kind,
            alert.cluster_id,
            alert.broker_id,
            alert.first_sign_at,
            alert.opening_event.at if alert.opening_event else None,
            alert.cleared_at,
            acknowledgements[alert.alert_id].author if alert.alert_id in acknowledgements else None,
            judgements[alert.alert_id].judgement if alert.alert_id in judgements else None,
            alert.is_removed,
        )
        for alert in _select_alerts(view, context)
    ]
    return TableRows(columns, [dict(zip(columns, row, strict=True)) for row in rows])


PAGE = Page(
    name="alerts",
    view=AlertsView,
    slots=(
        "alerts-title.children",
        "alerts-cards.children",
        "alerts-open.children",
        "alerts-history.children",
    ),
    build_body=build_body,
    fill=fill,
    parts=(PagePart("alerts", "Alerts", _read_rows),),
)
