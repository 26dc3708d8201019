"""One cluster: is the week good, what happened when, which broker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date
from difflib import get_close_matches

import pyarrow as pa
from dash import html

from fleetgauge_core import tables
from fleetgauge_dashboards.figures.brokers import SKEW_HEIGHT, heatmap, leader_lines, skew
from fleetgauge_dashboards.figures.burn_down import HEIGHT as BURN_DOWN_HEIGHT
from fleetgauge_dashboards.figures.burn_down import burn_down as budget
from fleetgauge_dashboards.figures.minutes import availability, latency, worst_homes, worst_homes_height
from fleetgauge_dashboards.figures.over_time import OverTime
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
)
from fleetgauge_dashboards.pages import correction_form
from fleetgauge_dashboards.pages.over_time import over_time, uncounted
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import (
    Component,
    aria,
    chart,
    link,
    number_card,
    panel,
    switch,
    table,
    tools,
    week_menu,
    window_switch,
)
from fleetgauge_dashboards.reader import ClusterWeek, Lake, UnreadableError
from fleetgauge_dashboards.reader.lake import BROKER_MINUTE, CLUSTER_MINUTE, NO_TABLE
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, count, duration, milliseconds, percent
from fleetgauge_dashboards.views.burn_down import BurnDown, burn_down
from fleetgauge_dashboards.views.cluster import (
    from_begin,
    newest_end,
    numbers,
    settled,
    span_shown,
    week_span,
    worst_minutes,
)
from fleetgauge_dashboards.views.deciding_minutes import Row, worst_home
from fleetgauge_dashboards.views.episodes import is_bad
from fleetgauge_dashboards.views.fleet import standing
from fleetgauge_dashboards.views.minutes import Brokers, Timeline, brokers, timeline

_CHARTS = ("latency", "worst", "heatmap", "leader", "skew", "availability", "budget")
CHARTS = tuple(f"cluster-{name}" for name in _CHARTS)
#: Clusters named where the asked one is not known.
KNOWN_LISTED = 20


def body() -> list[Component]:
    def drawn(
        name: str,
        title: str,
        definition: str,
        height: int,
        label: str,
        end: Component = None,
        below: Component = None,
    ) -> Component:
        figure = chart(f"cluster-{name}", height, label)
        own_tools = tools("cluster", name, f"cluster-{name}")
        return panel(title, definition, html.Div([figure, below]), end=end, tools=own_tools)

    return [
        html.Div(id="cluster-title", className="fg-titlerow"),
        html.Div(id="cluster-cards", className="fg-cards"),
        html.Div(id="cluster-span", className="fg-titlerow"),
        html.Div(
            [
                drawn(
                    "latency",
                    "Latency p99 of the worst broker, log scale",
                    "latency_chart",
                    250,
                    "Latency of each minute against the objective",
                ),
                drawn(
                    "worst",
                    "Who was the worst broker",
                    "worst_homes",
                    worst_homes_height(3),
                    "The worst broker of each minute",
                ),
                drawn(
                    "heatmap",
                    "Brokers by minute, p99 with failures counted",
                    "heatmap",
                    144,
                    "Latency of each broker and minute",
                    end=html.Div(id="cluster-leg"),
                    below=html.Nav(id="cluster-brokers", className="fg-brokers", **aria(label="Brokers")),
                ),
                drawn(
                    "leader",
                    "Leader leg p99 of each broker, log scale",
                    "leader_lines",
                    230,
                    "Acknowledgement latency of each broker alone",
                ),
                drawn(
                    "skew",
                    "Skew of the leader leg: slowest broker over the median one",
                    "skew",
                    SKEW_HEIGHT,
                    "Slowest over median broker of each minute",
                ),
                drawn(
                    "availability",
                    "Availability, all brokers pooled",
                    "availability_chart",
                    170,
                    "Availability of each minute",
                ),
                drawn(
                    "budget",
                    "Latency budget of the week",
                    "burn_down",
                    BURN_DOWN_HEIGHT,
                    "Budget minutes left over the week",
                ),
                panel("Worst minutes of those shown", "minute_latency", html.Div(id="cluster-minutes")),
            ],
            className="fg-panels fg-panels--wide",
        ),
        correction_form.form(),
    ]


def fill(view: ClusterView, context: Context, look: Theme) -> Slots | Notice:
    lake = context.lake
    weeks = lake.weeks_of(view.cluster_id)
    asked = view
    view, week = _settled(view, context)
    if week is None:
        return _no_week(asked) if weeks else _not_found(view, lake)
    rows, over = _minutes(view, context)
    minutes = timeline(rows, over.span, week.latency_objective_us, lake.minutes_since())
    leader, shown = (_brokers_of(view, leg, over.span, lake) for leg in (Leg.LEADER, view.leg))
    of_week = over_time(view, week_span(week.week, context.fleet.week_zone), context)
    figures = {
        "latency": latency(minutes, over, look),
        "worst": worst_homes(minutes, over, look),
        "heatmap": heatmap(shown, view.leg, minutes.objective_ms, over, look),
        "leader": leader_lines(leader, over, look),
        "skew": skew(leader, over, look),
        "availability": availability(minutes, over, look),
        "budget": budget(_burn_down(view, week, of_week.span, context), of_week, look),
    }
    worst = worst_minutes(rows.to_pylist(), week.latency_objective_us)
    return {
        "cluster-title.children": _title(view, week, weeks, context.fleet.week_zone),
        "cluster-cards.children": [number_card(number) for number in numbers(week)],
        "cluster-span.children": _span_row(view, week, over, minutes),
        "cluster-leg.children": _leg_switch(view),
        "cluster-brokers.children": _links_to(view, [row.broker_id for row in leader.brokers]),
        "cluster-minutes.children": _worst(view, worst, over.times, any_held=bool(len(rows))),
        **{f"cluster-{name}.figure": figure for name, figure in figures.items()},
    }


def _settled(view: ClusterView, context: Context) -> tuple[ClusterView, ClusterWeek | None]:
    weeks, zone = context.lake.weeks_of(view.cluster_id), context.fleet.week_zone
    return settled(view, weeks, zone, newest_end(context.fresh(), context.clock()))


def _minutes(view: ClusterView, context: Context) -> tuple[pa.Table, OverTime]:
    """Silver's minutes to draw, and what is drawn with them."""
    span = span_shown(view, context.fresh(), context.clock())
    rows = context.lake.cluster_minutes(view.cluster_id, span)
    span = from_begin(view, span, min(rows["minute"].to_pylist(), default=None))
    return rows, over_time(view, span, context)


def _brokers_of(view: ClusterView, leg: Leg, span: Span, lake: Lake) -> Brokers:
    return brokers(lake.broker_minutes(view.cluster_id, leg, span), span)


def _burn_down(view: ClusterView, week: ClusterWeek, span: Span, context: Context) -> BurnDown | None:
    """Of the whole week, whichever minutes are shown."""
    rows = context.lake.cluster_minutes(view.cluster_id, span)
    return burn_down(rows, week, span, uncounted(view.cluster_id, span, context))


def _no_week(view: ClusterView) -> Notice:
    newest = link("Show its newest week", ClusterView(view.cluster_id, lens=view.lens))
    return Notice(f"{view.cluster_id} has no week of {view.week:%a %d %b %Y}", ("It has others.", newest))


def _not_found(view: ClusterView, lake: Lake) -> Notice:
    """With those that are written most alike, for a fleet may have thousands."""
    if (path := tables.CLUSTER_WEEKS.path) in lake.missing():
        raise UnreadableError(path, NO_TABLE)
    known = lake.clusters()
    alike = get_close_matches(view.cluster_id, known, KNOWN_LISTED, cutoff=0) or known[:KNOWN_LISTED]
    return Notice(
        f"No cluster named {view.cluster_id}",
        (
            "It has no week in this lake: a typing error, or its first minute is not computed yet. "
            f"There {'is' if len(known) == 1 else 'are'} {count(len(known), 'cluster')}"
            f"{', written most alike:' if known else '.'}",
            html.Ul([html.Li(link(cluster, ClusterView(cluster, lens=view.lens))) for cluster in alike]),
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
        html.Span(f"{standing([week])}{reason}", className="fg-sub"),
        week_menu(others, week.week),
        link("Why these numbers?", WhyView(view.cluster_id, week.week, lens=view.lens)),
        link("Alerts of this cluster", AlertsView(view.cluster_id, lens=view.lens)),
    ]


def _at_week(view: ClusterView, week: date, newest: bool, zone: str) -> ClusterView:
    """The newest week is live; an older one shows all of its own minutes."""
    if newest:
        return replace(view, week=None, shown=Window.HOUR)
    return replace(view, week=week, shown=week_span(week, zone))


def _span_row(view: ClusterView, week: ClusterWeek, over: OverTime, minutes: Timeline) -> list[Component]:
    step = minutes.grid.step_min
    facts = [
        f"bad minutes: {minutes.bad}" if minutes.held else "",
        f"not measured: {duration(minutes.unmeasured)}" if minutes.unmeasured else "",
        "" if step == 1 else f"each point is the worst of {step} minutes",
    ]
    row = window_switch(view, over.span, over.times, *facts)
    if minutes.held_since is None:
        return row
    held = f"minutes are held from {over.times.minute(minutes.held_since)} on: "
    why = link("what is kept of earlier ones", WhyView(view.cluster_id, week.week, lens=view.lens))
    return [*row, html.Span([held, why], className="fg-sub")]


def _links_to(view: ClusterView, known: Sequence[int]) -> list[Component]:
    """What the rows of the map lead to; a figure's labels cannot be links."""
    return [
        link(f"broker {broker}", BrokerView(view.cluster_id, broker, view.shown, lens=view.lens))
        for broker in known
    ]


def _worst(view: ClusterView, found: Sequence[Row], times: Times, any_held: bool) -> Component:
    if not found:
        said = "No minute shown was over the objective." if any_held else "No minute is held of this time."
        return html.P(said, className="fg-note")
    rows = [
        (
            link(times.minute(at), MinuteView(view.cluster_id, at, lens=view.lens)),
            milliseconds(row["latency_p99_censored_us"]),
            milliseconds(row["latency_p99_us"]),
            NOTHING if (home := worst_home(row)) is None else f"broker {home}",
            percent(row["availability_pooled"]),
        )
        for row in found
        for at in (row["minute"].astimezone(UTC),)
    ]
    head = ("Minute", "p99, failures counted", "p99 of successes", "Worst broker", "Availability")
    return table("Worst minutes", head, rows)


def _leg_switch(view: ClusterView) -> Component:
    names = {Leg.CLIENT: "client leg: what clients feel", Leg.LEADER: "leader leg: who is sick"}
    return switch("Leg", [(names[leg], replace(view, leg=leg), leg is view.leg) for leg in Leg])


def _latency_rows(view: ClusterView, context: Context) -> Rows:
    """The minutes shown as silver has them, whether they are bad, and why."""
    view, week = _settled(view, context)
    rows, _ = _minutes(view, context)
    minutes = rows.sort_by("minute").to_pylist()
    objective_us = week.latency_objective_us if week else None
    return Rows((*CLUSTER_MINUTE, "bad"), [row | {"bad": is_bad(row, objective_us)} for row in minutes])


def _broker_rows(leg: Leg | None) -> Callable[[ClusterView, Context], Rows]:
    def rows(view: ClusterView, context: Context) -> Rows:
        """Every broker's minutes of a leg, or of the one that is shown."""
        view, _ = _settled(view, context)
        _, over = _minutes(view, context)
        found = context.lake.broker_minutes(view.cluster_id, leg or view.leg, over.span)
        return Rows(
            BROKER_MINUTE, found.sort_by([("minute", "ascending"), ("broker_id", "ascending")]).to_pylist()
        )

    return rows


def _skew_rows(view: ClusterView, context: Context) -> Rows:
    view, _ = _settled(view, context)
    _, over = _minutes(view, context)
    model = _brokers_of(view, Leg.LEADER, over.span, context.lake)
    steps = zip(model.grid.at, model.skew, strict=True)
    return Rows(
        ("from", "slowest_over_median"), [{"from": at, "slowest_over_median": one} for at, one in steps]
    )


def _budget_rows(view: ClusterView, context: Context) -> Rows:
    view, week = _settled(view, context)
    span = week_span(week.week, context.fleet.week_zone) if week else None
    model = _burn_down(view, week, span, context) if week and span else None
    hours = zip(model.at, model.left, strict=True) if model else ()
    return Rows(("at", "left_minutes"), [{"at": at, "left_minutes": left} for at, left in hours])


PAGE = Page(
    name="cluster",
    view=ClusterView,
    slots=(
        "cluster-title.children",
        "cluster-cards.children",
        "cluster-span.children",
        "cluster-leg.children",
        "cluster-brokers.children",
        "cluster-minutes.children",
        *(f"{name}.figure" for name in CHARTS),
    ),
    body=body,
    fill=fill,
    parts=(
        Part("latency", "Cluster-minutes", _latency_rows),
        Part("worst", "Worst broker by minute", _latency_rows),
        Part("heatmap", "Broker-minutes of the leg shown", _broker_rows(None)),
        Part("leader", "Broker-minutes of the leader leg", _broker_rows(Leg.LEADER)),
        Part("skew", "Skew of the leader leg", _skew_rows),
        Part("availability", "Cluster-minutes", _latency_rows),
        Part("budget", "Latency budget by hour", _budget_rows),
    ),
)
