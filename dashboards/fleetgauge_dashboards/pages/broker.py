"""One broker: what clients feel of it, what it does alone, and what was ever found of it."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from dash import html

from fleetgauge_dashboards.figures.broker import FAILURES_HEIGHT, LATENCY_HEIGHT, failures, leg_latency
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import AlertsView, BrokerView, ClusterView, Leg
from fleetgauge_dashboards.pages.over_time import over_time
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import (
    Component,
    chart,
    link,
    number_card,
    panel,
    table,
    tools,
    window_switch,
)
from fleetgauge_dashboards.reader.lake import BROKER_DETAIL
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, duration
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.broker import Reason, broker_minutes, history
from fleetgauge_dashboards.views.cluster import from_begin, span_shown

CHARTS = (*(f"broker-{leg}" for leg in Leg), "broker-failures")
#: Findings listed, newest first.
HISTORY = 50


def body() -> list[Component]:
    client, leader = (
        chart(f"broker-{leg}", LATENCY_HEIGHT, f"Latency of each minute, {leg} leg") for leg in Leg
    )
    failed = chart("broker-failures", FAILURES_HEIGHT, "Failed probes of each minute by reason")
    return [
        html.Div(id="broker-title", className="fg-titlerow"),
        html.Div(id="broker-cards", className="fg-cards"),
        html.Div(id="broker-span", className="fg-titlerow"),
        html.Div(
            [
                panel(
                    "Client leg: what clients of its partitions feel, log scale",
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
                    failed,
                    tools=tools("broker", "failures", "broker-failures"),
                ),
                panel(
                    "Connection and failures: what the reasons say", "reasons", html.Div(id="broker-reasons")
                ),
                html.Section(id="broker-history", className="fg-panel"),
            ],
            className="fg-panels fg-panels--wide",
        ),
    ]


def fill(view: BrokerView, context: Context, look: Theme) -> Slots | Notice:
    lake, now = context.lake, context.clock()
    span = span_shown(view, context.fresh(), now)
    rows = lake.broker_detail(view.cluster_id, view.broker_id, span)
    told = context.alerts()
    found = history(told or (), view)
    if not len(rows) and not found:
        return _nothing(view)
    span = from_begin(view, span, min(rows["minute"].to_pylist(), default=None))
    model, over = broker_minutes(rows, view.broker_id, span), over_time(view, span, context)
    figures = {f"broker-{leg.leg}.figure": leg_latency(leg, model.grid, over, look) for leg in model.legs}
    return {
        "broker-title.children": _title(view),
        "broker-cards.children": [number_card(number) for number in model.numbers],
        "broker-span.children": window_switch(view, span, over.times),
        **figures,
        "broker-failures.figure": failures(model, over, look),
        "broker-reasons.children": _reasons(model.reasons, over.times),
        "broker-history.children": _history(None if told is None else found, now, view, over.times),
    }


def _nothing(view: BrokerView) -> Notice:
    return Notice(
        f"Nothing is known of broker {view.broker_id} of {view.cluster_id}",
        (
            "It was not measured in these minutes, and nothing was ever found of it.",
            link(f"Cluster {view.cluster_id}", ClusterView(view.cluster_id, lens=view.lens)),
        ),
    )


def _title(view: BrokerView) -> list[Component]:
    cluster = ClusterView(view.cluster_id, shown=view.shown, leg=Leg.LEADER, lens=view.lens)
    return [
        html.H1(f"{view.cluster_id}, broker {view.broker_id}"),
        link("Its cluster then", cluster),
        link("Alerts of the cluster", AlertsView(view.cluster_id, lens=view.lens)),
    ]


def _reasons(found: Sequence[Reason], times: Times) -> Component:
    if not found:
        return html.P("No probe failed in the minutes shown.", className="fg-note")
    rows = [
        (
            one.code,
            one.says,
            *(f"{one.probes[leg]:,}" for leg in Leg),
            times.minute(one.first),
            times.minute(one.last),
        )
        for one in found
    ]
    head = ("Reason", "Says", *(f"Probes, {leg} leg" for leg in Leg), "First in", "Last in")
    return table("Why probes failed", head, rows)


def _history(found: Sequence[Alert] | None, now: datetime, view: BrokerView, times: Times) -> list[Component]:
    """None where alerts cannot be read."""
    heading = html.H2("Found of it, newest first", className="fg-heading")
    if found is None:
        return [heading, html.P("Not known: the alerts cannot be read.", className="fg-note")]
    if not found:
        return [heading, html.P("Nothing was ever found of this broker.", className="fg-note")]
    rows = [
        (
            link(one.kind, AlertsView(view.cluster_id, one.alert_id, lens=view.lens)),
            times.instant(one.opened),
            times.instant(one.cleared) if one.cleared else f"▲ open for {duration(one.lasted(now))}",
            duration(one.lasted(now)) if one.cleared else NOTHING,
            link("Show the cluster then", one.view(view.lens)),
        )
        for one in found[:HISTORY]
    ]
    return [heading, table("Findings of the broker", ("Kind", "Opened", "Cleared", "Lasted", ""), rows)]


def _rows(legs: Collection[Leg]) -> Callable[[BrokerView, Context], Rows]:
    def rows(view: BrokerView, context: Context) -> Rows:
        """The legs' minutes as silver has them."""
        span = span_shown(view, context.fresh(), context.clock())
        found = context.lake.broker_detail(view.cluster_id, view.broker_id, span)
        minutes = found.sort_by([("minute", "ascending"), ("leg", "ascending")]).to_pylist()
        # Arrow gives a map as pairs.
        own = [row | {"failures": dict(row["failures"] or ())} for row in minutes if row["leg"] in legs]
        return Rows(BROKER_DETAIL, own)

    return rows


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
    body=body,
    fill=fill,
    parts=(
        *(Part(leg, f"Minutes of the {leg} leg", _rows((leg,))) for leg in Leg),
        Part("failures", "Minutes of both legs", _rows(tuple(Leg))),
    ),
)
