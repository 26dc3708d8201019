"""The page of a broker: its client and leader legs, failed probes by reason, and its alerts."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from dash import html

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.figures.broker import (
    FAILURES_HEIGHT,
    LATENCY_HEIGHT,
    plot_failures,
    plot_leg_latency,
)
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
)
from fleetgauge_dashboards.pages.chart_context import build_chart_context
from fleetgauge_dashboards.pages.components import (
    Component,
    chart,
    key_figure_card,
    link,
    panel,
    table,
    time_range_row,
    tools,
)
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader.lake import BROKER_DETAIL_COLUMNS
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import NO_VALUE, format_duration
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_dashboards.views.broker import FailureReason, build_broker_detail, select_broker_alerts
from fleetgauge_dashboards.views.cluster import resolve_span, trim_to_first_minute

CHARTS = (*(f"broker-{leg}" for leg in Leg), "broker-failures")
#: Alerts in the history, newest first.
MAX_HISTORY = 50


def build_body() -> list[Component]:
    """Return the page's layout."""
    client, leader = (
        chart(f"broker-{leg}", LATENCY_HEIGHT, f"Latency of each minute, {leg} leg") for leg in Leg
    )
    failures = chart("broker-failures", FAILURES_HEIGHT, "Failed probes of each minute by reason")
    return [
        html.Div(id="broker-title", className="fg-titlerow"),
        html.Div(id="broker-cards", className="fg-cards"),
        html.Div(id="broker-span", className="fg-titlerow"),
        html.Div(
            [
                panel(
                    "Client leg: what clients of its partitions experience, log scale",
                    "client_leg",
                    client,
                    tools=tools("broker", "client", "broker-client"),
                ),
                panel(
                    "Leader leg: what the broker does alone, log scale",
                    "leader_lines",
                    leader,
                    tools=tools("broker", "leader", "broker-leader"),
                ),
                panel(
                    "Failed probes by reason",
                    "failures",
                    failures,
                    tools=tools("broker", "failures", "broker-failures"),
                ),
                panel("Why probes and connections failed", "reasons", html.Div(id="broker-reasons")),
                html.Section(id="broker-history", className="fg-panel"),
            ],
            className="fg-panels fg-panels--wide",
        ),
    ]


def fill(view: BrokerView, context: PageContext, theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice if the broker has neither minutes nor alerts."""
    lake, now = context.lake, context.clock()
    span = resolve_span(view, context.assess_freshness(), now)
    rows = lake.broker_detail(view.cluster_id, view.broker_id, span)
    all_alerts = context.read_alerts()
    broker_alerts = select_broker_alerts(all_alerts or (), view)
    if not len(rows) and not broker_alerts:
        return _no_data_of_broker(view)
    span = trim_to_first_minute(view, span, min(rows["minute"].to_pylist(), default=None))
    model, chart_context = (
        build_broker_detail(rows, view.broker_id, span),
        build_chart_context(view, span, context),
    )
    figures = {
        f"broker-{leg.leg}.figure": plot_leg_latency(leg, model.grid, chart_context, theme)
        for leg in model.legs
    }
    return {
        "broker-title.children": _title_row(view),
        "broker-cards.children": [key_figure_card(figure) for figure in model.key_figures],
        "broker-span.children": time_range_row(view, span, chart_context.times),
        **figures,
        "broker-failures.figure": plot_failures(model, chart_context, theme),
        "broker-reasons.children": _reasons_table(model.reasons, chart_context.times),
        "broker-history.children": _history(
            None if all_alerts is None else broker_alerts, now, view, chart_context.times
        ),
    }


def _no_data_of_broker(view: BrokerView) -> PageNotice:
    return PageNotice(
        f"No data of broker {view.broker_id} of {view.cluster_id}",
        (
            "It was not measured in this time range and has never had an alert.",
            link(f"Cluster {view.cluster_id}", ClusterView(view.cluster_id, display=view.display)),
        ),
    )


def _title_row(view: BrokerView) -> list[Component]:
    cluster = ClusterView(view.cluster_id, shown=view.shown, leg=Leg.LEADER, display=view.display)
    return [
        html.H1(f"{view.cluster_id}, broker {view.broker_id}"),
        link("Cluster at that time", cluster),
        link("Alerts of the cluster", AlertsView(view.cluster_id, display=view.display)),
    ]


def _reasons_table(reasons: Sequence[FailureReason], times: TimeFormat) -> Component:
    if not reasons:
        return html.P("No probe failed in this time range.", className="fg-note")
    rows = [
        (
            reason.code,
            reason.meaning,
            *(f"{reason.failed_probes[leg]:,}" for leg in Leg),
            times.format_minute(reason.first),
            times.format_minute(reason.last),
        )
        for reason in reasons
    ]
    headings = ("Error", "Meaning", *(f"Probes, {leg} leg" for leg in Leg), "First minute", "Last minute")
    return table("Why probes failed", headings, rows)


def _history(
    broker_alerts: Sequence[HealthAlert] | None, now: datetime, view: BrokerView, times: TimeFormat
) -> list[Component]:
    """Return the alerts as a table; None means that they cannot be read."""
    heading = html.H2("Alerts of this broker, newest first", className="fg-heading")
    if broker_alerts is None:
        return [heading, html.P("Unknown: the alerts cannot be read.", className="fg-note")]
    if not broker_alerts:
        return [heading, html.P("This broker has never had an alert.", className="fg-note")]
    rows = [
        (
            link(alert.kind, AlertsView(view.cluster_id, alert.alert_id, display=view.display)),
            times.format_instant(alert.opened_at),
            alert.format_end(times)
            if alert.cleared_at
            else f"▲ open for {format_duration(alert.duration(now))}",
            format_duration(alert.duration(now)) if alert.cleared_at else NO_VALUE,
            link("Cluster at that time", alert.view(view.display)),
        )
        for alert in broker_alerts[:MAX_HISTORY]
    ]
    return [heading, table("Alerts of the broker", ("Kind", "Opened", "Cleared", "Duration", ""), rows)]


def _rows_reader(legs: Collection[Leg]) -> Callable[[BrokerView, PageContext], TableRows]:
    def read_rows(view: BrokerView, context: PageContext) -> TableRows:
        """Return the legs' minutes as stored in silver."""
        span = resolve_span(view, context.assess_freshness(), context.clock())
        table = context.lake.broker_detail(view.cluster_id, view.broker_id, span)
        minutes = table.sort_by([("minute", "ascending"), ("leg", "ascending")]).to_pylist()
        # Arrow returns a map as a list of pairs.
        rows = [row | {"failures": dict(row["failures"] or ())} for row in minutes if row["leg"] in legs]
        return TableRows(BROKER_DETAIL_COLUMNS, rows)

    return read_rows


PAGE = Page(
    name="broker",
    view=BrokerView,
    slots=(
        "broker-title.children",
        "broker-cards.children",
        "broker-span.children",
        *(f"{name}.figure" for name in CHARTS),
        "broker-reasons.children",
        "broker-history.children",
    ),
    build_body=build_body,
    fill=fill,
    parts=(
        *(PagePart(leg, f"Minutes of the {leg} leg", _rows_reader((leg,))) for leg in Leg),
        PagePart("failures", "Minutes of both legs", _rows_reader(tuple(Leg))),
    ),
)
