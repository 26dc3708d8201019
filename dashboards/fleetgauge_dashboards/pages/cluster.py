"""One cluster: is the week good, what happened when, which broker."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update

from fleetgauge_dashboards.figures.brokers import heatmap, leader_lines
from fleetgauge_dashboards.figures.minutes import availability, latency
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import AlertsView, ClusterView, Leg, Span, Window, href, parse
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, chart, link, panel, switch, week_menu
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import count, duration, instant
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.cluster import (
    Number,
    Verdict,
    bands,
    find_week,
    from_begin,
    numbers,
    span_shown,
    week_span,
    zoomed,
)
from fleetgauge_dashboards.views.fleet import standing
from fleetgauge_dashboards.views.minutes import Timeline, brokers, timeline

CHARTS = ("cluster-latency", "cluster-heatmap", "cluster-leader", "cluster-availability")
#: Clusters named where the asked one is not known.
KNOWN_LISTED = 20
_SIGNS = {Verdict.MET: "✓ met", Verdict.MISSED: "✕ missed", Verdict.UNKNOWN: "not known"}


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
                    chart("cluster-heatmap", 144, "Latency of each broker and minute"),
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
        "cluster-cards.children": [_card(number) for number in numbers(week)],
        "cluster-span.children": _span_row(view, span, minutes),
        "cluster-leg.children": _leg_switch(view),
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
        week_menu(others),
        link("Alerts of this cluster", AlertsView(view.cluster_id, fleet=view.fleet)),
    ]


def _at_week(view: ClusterView, week: date, newest: bool, zone: str) -> ClusterView:
    """The newest week is live; an older one shows all of its own minutes."""
    if newest:
        return replace(view, week=None, shown=Window.HOUR)
    return replace(view, week=week, shown=week_span(week, zone))


def _card(number: Number) -> Component:
    verdict = html.Span(_SIGNS[number.verdict], className=f"fg-{number.verdict.value} fg-sub")
    return panel(
        number.title,
        number.definition,
        html.Div(
            [
                html.Div(number.value, className="fg-big"),
                *(html.Div(note, className="fg-note") for note in number.notes),
            ]
        ),
        end=verdict,
    )


def _span_row(view: ClusterView, span: Span, minutes: Timeline) -> list[Component]:
    live = isinstance(view.shown, Window)
    choices = [(f"last {w.value}", replace(view, shown=w), w is view.shown) for w in Window]
    step = minutes.grid.step_min
    thinned = "" if step == 1 else f" · each point is the worst of {step} minutes"
    unmeasured = sum((gap.end - gap.start for gap in minutes.gaps), start=span.end - span.end)
    gap = f" · not measured: {duration(unmeasured)}" if unmeasured else ""
    return [
        switch("Minutes shown", choices),
        html.Span(
            f"{instant(span.start)[:16]} to {instant(span.end)[:16]} UTC{'' if live else ', fixed'}"
            f" · bad minutes: {minutes.bad}{gap}{thinned}",
            className="fg-sub",
        ),
        link("Link to exactly these minutes", replace(view, shown=span)) if live else "",
    ]


def _leg_switch(view: ClusterView) -> Component:
    names = {Leg.CLIENT: "client leg: what clients feel", Leg.LEADER: "leader leg: who is sick"}
    return switch("Leg", [(names[leg], replace(view, leg=leg), leg is view.leg) for leg in Leg])


def register_zoom(app: Dash) -> None:
    """A drag along any time axis becomes the minutes in the address: a zoom is a link, too."""

    def zoom(*moves_then_address: Any) -> Any:
        *_, pathname, search = moves_then_address
        view = parse(pathname, search or "")
        if not isinstance(view, ClusterView) or not isinstance(ctx.triggered_id, str):
            return no_update
        closer = zoomed(view, ctx.triggered[0]["value"] or {})
        return no_update if closer is None else f"?{href(closer).partition('?')[2]}"

    app.callback(
        Output("url", "search"),
        *(Input(name, "relayoutData") for name in CHARTS),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(zoom)


PAGE = Page(
    name="cluster",
    view=ClusterView,
    slots=(
        "cluster-title.children",
        "cluster-cards.children",
        "cluster-span.children",
        "cluster-leg.children",
        *(f"{name}.figure" for name in CHARTS),
    ),
    body=body,
    fill=fill,
)
