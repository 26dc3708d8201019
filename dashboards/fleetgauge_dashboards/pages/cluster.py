"""One cluster: is the week good, what happened when, which broker."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date
from difflib import get_close_matches

from dash import html

from fleetgauge_dashboards.figures.brokers import heatmap, leader_lines
from fleetgauge_dashboards.figures.minutes import availability, latency
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    Leg,
    MinuteView,
    Span,
    WhyView,
    Window,
    href,
)
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import (
    Component,
    aria,
    chart,
    link,
    number_card,
    panel,
    switch,
    table,
    week_menu,
    window_switch,
)
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import NOTHING, count, duration, instant, milliseconds, percent
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.cluster import (
    bands,
    find_week,
    from_begin,
    numbers,
    span_shown,
    week_span,
    worst_minutes,
)
from fleetgauge_dashboards.views.deciding import Row, worst_home
from fleetgauge_dashboards.views.fleet import standing
from fleetgauge_dashboards.views.minutes import Timeline, brokers, timeline

CHARTS = ("cluster-latency", "cluster-heatmap", "cluster-leader", "cluster-availability")
#: Clusters named where the asked one is not known.
KNOWN_LISTED = 20


def body() -> list[Component]:
    return [
        html.Div(id="cluster-title", className="fg-titlerow"),
        html.Div(id="cluster-cards", className="fg-cards"),
        html.Div(id="cluster-span", className="fg-titlerow"),
        html.Div(
            [
                panel(
                    "Latency p99 of the worst broker, log scale",
                    "latency_chart",
                    chart("cluster-latency", 250, "Latency of each minute against the objective"),
                ),
                panel(
                    "Brokers by minute, p99 with failures counted",
                    "heatmap",
                    html.Div(
                        [
                            chart("cluster-heatmap", 144, "Latency of each broker and minute"),
                            html.Nav(id="cluster-brokers", className="fg-brokers", **aria(label="Brokers")),
                        ]
                    ),
                    end=html.Div(id="cluster-leg"),
                ),
                panel(
                    "Leader leg p99 of each broker, log scale",
                    "leader_lines",
                    chart("cluster-leader", 230, "Acknowledgement latency of each broker alone"),
                ),
                panel(
                    "Availability, all brokers pooled",
                    "availability_chart",
                    chart("cluster-availability", 170, "Availability of each minute"),
                ),
                panel("Worst minutes of those shown", "minute_latency", html.Div(id="cluster-worst")),
            ],
            className="fg-panels fg-panels--wide",
        ),
    ]


def fill(view: ClusterView, context: Context, look: Theme) -> Slots | Notice:
    lake, fresh = context.lake, context.fresh()
    weeks = lake.weeks_of(view.cluster_id)
    week = find_week(weeks, view.week)
    if week is None:
        return _not_found(view, lake.clusters())
    span = span_shown(view, fresh, context.clock())
    rows = lake.cluster_minutes(view.cluster_id, span)
    span = from_begin(view, span, min(rows["minute"].to_pylist(), default=None))
    found = bands(alerts(lake.health_events()), view.cluster_id, span)
    minutes = timeline(rows, span, week.latency_objective_us)
    leader = brokers(lake.broker_minutes(view.cluster_id, Leg.LEADER, span), span)
    shown = (
        leader
        if view.leg is Leg.LEADER
        else brokers(lake.broker_minutes(view.cluster_id, Leg.CLIENT, span), span)
    )
    revision = href(view)
    return {
        "cluster-title.children": _title(view, week, weeks, context.fleet.week_zone),
        "cluster-cards.children": [number_card(number) for number in numbers(week)],
        "cluster-span.children": _span_row(view, span, minutes),
        "cluster-leg.children": _leg_switch(view),
        "cluster-brokers.children": _brokers(view, [row.broker_id for row in leader.brokers]),
        "cluster-worst.children": _worst(view, worst_minutes(rows.to_pylist(), week.latency_objective_us)),
        "cluster-latency.figure": latency(minutes, found, span, look, revision),
        "cluster-heatmap.figure": heatmap(shown, view.leg, minutes.objective_ms, found, span, look, revision),
        "cluster-leader.figure": leader_lines(leader, found, span, look, revision),
        "cluster-availability.figure": availability(minutes, found, span, look, revision),
    }


def _not_found(view: ClusterView, known: Sequence[str]) -> Notice:
    """With those that are written most alike, for a fleet may have thousands."""
    alike = get_close_matches(view.cluster_id, known, KNOWN_LISTED, cutoff=0) or known[:KNOWN_LISTED]
    return Notice(
        f"No cluster named {view.cluster_id}",
        (
            "It has no week in this lake: a typing error, or its first minute is not computed yet. "
            f"There {'is' if len(known) == 1 else 'are'} {count(len(known), 'cluster')}"
            f"{', written most alike:' if known else '.'}",
            html.Ul([html.Li(link(cluster, ClusterView(cluster, fleet=view.fleet))) for cluster in alike]),
        ),
    )


def _title(
    view: ClusterView, week: ClusterWeek, weeks: tuple[ClusterWeek, ...], zone: str
) -> list[Component]:
    own = sorted((row.week for row in weeks), reverse=True)
    reason = f" ({week.revision_reason})" if week.revision > 1 and week.revision_reason else ""
    others = [(day, _at_week(view, day, day == own[0], zone)) for day in own]
    return [
        html.H1(f"{view.cluster_id}, week of {week.week:%a %d %b %Y}"),
        html.Span(f"{standing([week])}{reason} · all times UTC", className="fg-sub"),
        week_menu(others, week.week),
        link("Why these numbers?", WhyView(view.cluster_id, week.week, fleet=view.fleet)),
        link("Alerts of this cluster", AlertsView(view.cluster_id, fleet=view.fleet)),
    ]


def _at_week(view: ClusterView, week: date, newest: bool, zone: str) -> ClusterView:
    """The newest week is live; an older one shows all of its own minutes."""
    if newest:
        return replace(view, week=None, shown=Window.HOUR)
    return replace(view, week=week, shown=week_span(week, zone))


def _span_row(view: ClusterView, span: Span, minutes: Timeline) -> list[Component]:
    step = minutes.grid.step_min
    unmeasured = sum((gap.end - gap.start for gap in minutes.gaps), start=span.end - span.end)
    return window_switch(
        view,
        span,
        f"bad minutes: {minutes.bad}",
        f"not measured: {duration(unmeasured)}" if unmeasured else "",
        "" if step == 1 else f"each point is the worst of {step} minutes",
    )


def _brokers(view: ClusterView, known: Sequence[int]) -> list[Component]:
    """What the rows of the map lead to; a figure's labels cannot be links."""
    return [
        link(f"broker {broker}", BrokerView(view.cluster_id, broker, view.shown, fleet=view.fleet))
        for broker in known
    ]


def _worst(view: ClusterView, found: Sequence[Row]) -> Component:
    if not found:
        return html.P("No minute shown was over the objective.", className="fg-note")
    rows = [
        (
            link(instant(at)[:16], MinuteView(view.cluster_id, at, fleet=view.fleet)),
            milliseconds(row["latency_p99_censored_us"]),
            milliseconds(row["latency_p99_us"]),
            NOTHING if (home := worst_home(row)) is None else f"broker {home}",
            percent(row["availability_pooled"]),
        )
        for row in found
        for at in (row["minute"].astimezone(UTC),)
    ]
    head = ("Minute, UTC", "p99, failures counted", "p99 of successes", "Worst broker", "Availability")
    return table("Worst minutes", head, rows)


def _leg_switch(view: ClusterView) -> Component:
    names = {Leg.CLIENT: "client leg: what clients feel", Leg.LEADER: "leader leg: who is sick"}
    return switch("Leg", [(names[leg], replace(view, leg=leg), leg is view.leg) for leg in Leg])


PAGE = Page(
    name="cluster",
    view=ClusterView,
    slots=(
        "cluster-title.children",
        "cluster-cards.children",
        "cluster-span.children",
        "cluster-leg.children",
        "cluster-brokers.children",
        "cluster-worst.children",
        *(f"{name}.figure" for name in CHARTS),
    ),
    body=body,
    fill=fill,
)
