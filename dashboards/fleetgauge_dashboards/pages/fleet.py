"""The fleet: are we getting better, who is worst, what is open."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta

from dash import html

from fleetgauge_dashboards.figures.causes import HEIGHT, pareto
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.trend import HEIGHT as TREND_HEIGHT
from fleetgauge_dashboards.figures.trend import divided, trend
from fleetgauge_dashboards.links import FleetView, WhyView, href
from fleetgauge_dashboards.pages.fleet_table import ROWS_DRAWN, clusters_table, line
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import (
    Component,
    anchor,
    chart,
    file_link,
    link,
    panel,
    switch,
    table,
    tools,
    week_menu,
)
from fleetgauge_dashboards.reader import WHOLE, ClusterWeek, FleetWeek, Lake
from fleetgauge_dashboards.units import count
from fleetgauge_dashboards.views.burning import latency_burns
from fleetgauge_dashboards.views.causes import Cause, causes
from fleetgauge_dashboards.views.fleet import (
    AVAILABILITY,
    BUDGET,
    LATENCY,
    TREND_WEEKS,
    Fleet,
    Headline,
    fleet,
    members,
    segment_of,
)
from fleetgauge_dashboards.views.fleet_rows import TREND_WEEKS as ROW_WEEKS
from fleetgauge_dashboards.views.fleet_rows import Beside
from fleetgauge_dashboards.views.weeks import shown_week

_QUANTILES = ("median", "p90", "p99")
_TITLES = {
    LATENCY: ("Latency p99 over clusters", "fleet_latency"),
    AVAILABILITY: ("Availability over clusters", "fleet_availability"),
    BUDGET: ("Latency budget left over clusters", "fleet_budget"),
}


def body() -> list[Component]:
    return [
        html.Div(id="fleet-title", className="fg-titlerow"),
        html.Div(id="fleet-cards", className="fg-cards"),
        html.Div(id="fleet-excluded", className="fg-excluded"),
        html.Div(
            [
                panel(
                    "Latency p99 by week, log scale",
                    "fleet_latency",
                    chart("fleet-latency", TREND_HEIGHT, "Latency by week: quantiles over clusters"),
                    tools=tools("fleet", "latency", "fleet-latency"),
                ),
                panel(
                    "Availability by week",
                    "fleet_availability",
                    chart(
                        "fleet-availability", TREND_HEIGHT, "Availability by week: quantiles over clusters"
                    ),
                    tools=tools("fleet", "availability", "fleet-availability"),
                ),
                panel(
                    "What burns the budget",
                    "causes",
                    chart("fleet-causes", HEIGHT, "Bad minutes of the week by cause"),
                    tools=tools("fleet", "causes", "fleet-causes"),
                ),
            ],
            className="fg-panels fg-panels--three",
        ),
        html.Div(id="fleet-segments"),
        *clusters_table(),
    ]


def fill(view: FleetView, context: Context, look: Theme) -> Slots | Notice:
    lake = context.lake
    weeks = lake.weeks()
    week = shown_week(weeks, view.week)
    if week is None:
        return _no_week(view, bool(weeks))
    known = lake.segments()
    if view.by is not None and view.by not in known:
        whole = link("Show the whole fleet", replace(view, by=None, value=None))
        return Notice(
            f"The fleet is not divided by {view.by}", (f"Known: {', '.join(known) or 'none'}.", whole)
        )
    model = _model(view, context, week)
    burned = causes(lake.burn_causes(week, *segment_of(view)), week)
    latency, availability = (
        [
            divided(trend_.metric, parts, look)
            for trend_, parts in zip(model.trends, model.divided, strict=True)
        ]
        if model.divided
        else [trend(one, look) for one in model.trends]
    )
    return {
        "fleet-title.children": _title(model, view, known),
        "fleet-cards.children": [_card(headline, _at(view, week)) for headline in model.headlines],
        "fleet-excluded.children": model.excluded,
        "fleet-latency.figure": latency,
        "fleet-availability.figure": availability,
        "fleet-causes.figure": pareto(burned, look),
        "fleet-segments.children": _segments(model, view),
        "fleet-found.children": _found(model, view),
        "fleet-table.className": "" if len(model.rows) > ROWS_DRAWN else "fg-one-page",
        "fleet-grid.rowData": [line(row) for row in model.rows],
    }


def _no_week(view: FleetView, others: bool) -> Notice:
    if others:
        newest = link("Show the newest week", replace(view, week=None))
        return Notice(f"No week of {view.week:%a %d %b %Y}", ("The lake holds others.", newest))
    return Notice(
        "No week yet",
        ("Minutes may be there, but no week is computed. It appears with the pipeline's next batch.",),
    )


def _model(view: FleetView, context: Context, week: date) -> Fleet:
    lake, fresh, segments = context.lake, context.fresh(), context.fleet.segments
    clusters = members(lake.cluster_weeks(week), segments, view)
    beside = Beside(
        context.alerts(),
        fresh,
        lake.latency_history(week, ROW_WEEKS),
        latency_burns(lake.recent_minutes(), clusters, context.clock()),
        segments,
    )
    parts = lake.fleet_weeks(view.by) if view.by and view.value is None else ()
    return fleet(week, lake.weeks(), clusters, _own(lake, view), parts, beside, view)


def _own(lake: Lake, view: FleetView) -> list[FleetWeek]:
    """The weeks of what is shown."""
    segment, value = segment_of(view)
    return [row for row in lake.fleet_weeks(segment) if row.segment_value == value]


def _title(model: Fleet, view: FleetView, segments: Sequence[str]) -> list[Component]:
    what = f"Fleet, {view.by} {view.value}" if view.by and view.value is not None else "Fleet"
    choices = [("whole fleet", replace(view, by=None, value=None), view.by is None)]
    choices += [(f"by {one}", replace(view, by=one, value=None), view.by == one) for one in segments]
    return [
        html.H1(f"{what}, week of {model.week:%a %d %b %Y}"),
        html.Span(f"{model.standing} · {count(model.clusters, 'cluster')}", className="fg-sub"),
        week_menu([(week, replace(view, week=week)) for week in model.weeks], model.week),
        switch("Divided", choices) if segments else None,
    ]


def _segments(model: Fleet, view: FleetView) -> Component:
    """Of a fleet that is divided: the quantiles of each value, and the way to it."""
    if not model.segments:
        return None
    three = [
        f"{name} {quantile}" for name in ("Latency", "Availability") for quantile in ("median", "p90", "p99")
    ]
    rows = [
        (
            link(one.value, one.view),
            f"{one.clusters:,}",
            *(getattr(headline, q) for headline in (one.latency, one.availability) for q in _QUANTILES),
            one.budget.p99,
        )
        for one in model.segments
    ]
    head = (str(view.by).capitalize(), "Clusters", *three, "Budget left, p99")
    return panel(
        f"This week by {view.by}",
        "segments",
        table(f"By {view.by}", head, rows),
        tools=[file_link("CSV", view, "segments")],
        class_name="fg-apart",
    )


def _at(view: FleetView, week: date) -> FleetView:
    """The same at the week that is shown, whichever day was asked for; the newest moves on."""
    return view if view.week is None else replace(view, week=week)


def _found(model: Fleet, view: FleetView) -> str:
    """What the table holds, where that is not every cluster."""
    if len(model.rows) < model.matching:
        return f"the worst {len(model.rows):,} of {count(model.matching, 'cluster')}: search for others"
    return f"{model.matching:,} of {count(model.clusters, 'cluster')}" if view.search else ""


def _card(headline: Headline, view: FleetView) -> Component:
    title, definition = _TITLES[headline.metric]
    quantiles = [_quantile(name, getattr(headline, name), headline, view) for name in _QUANTILES]
    note = html.Div(f"{headline.sample} · {headline.before}", className="fg-note")
    return panel(title, definition, html.Div([html.Div(quantiles, className="fg-three"), note]))


def _quantile(name: str, value: str, headline: Headline, view: FleetView) -> Component:
    """Why this number: it is one cluster's, and leads there."""
    whose = headline.whose.get(name)
    shown: Component = value
    if whose is not None:
        why = href(WhyView(whose, view.week, lens=view.lens))
        shown = anchor(value, why, "fg-quiet", label=f"{name} {value}: why {whose} has it")
    return html.Div([html.Div(shown, className="fg-big"), html.Div(name, className="fg-label")])


def _weeks_of(metric: str) -> Callable[[FleetView, Context], Rows]:
    def rows(view: FleetView, context: Context) -> Rows:
        """The weeks that the chart draws: of the fleet, or of each value by which it is divided."""
        lake = context.lake
        week = shown_week(lake.weeks(), view.week)
        divided = view.by and view.value is None
        own = lake.fleet_weeks(view.by) if view.by and divided else _own(lake, view)
        since = week - timedelta(days=7 * (TREND_WEEKS - 1)) if week else None
        kept = [one for one in own if one.metric == metric and since and week and since <= one.week <= week]
        kept.sort(key=lambda one: (one.week, one.segment_value))
        return Rows(FleetWeek.__slots__, [asdict(one) for one in kept])

    return rows


def _causes_of(view: FleetView, context: Context) -> Rows:
    week = shown_week(context.lake.weeks(), view.week)
    found = causes(context.lake.burn_causes(week, *segment_of(view)), week) if week else ()
    return Rows(Cause.__slots__, [asdict(one) for one in found])


def _clusters_of(view: FleetView, context: Context) -> Rows:
    """Every cluster of what is shown, also those that the table has no room for."""
    week = shown_week(context.lake.weeks(), view.week)
    found = members(context.lake.cluster_weeks(week), context.fleet.segments, view) if week else ()
    wanted = (view.search or "").casefold()
    return Rows(ClusterWeek.__slots__, [asdict(one) for one in found if wanted in one.cluster_id.casefold()])


def _segments_of(view: FleetView, context: Context) -> Rows:
    """Every metric of every value in the week."""
    week = shown_week(context.lake.weeks(), view.week)
    found = [one for one in context.lake.fleet_weeks(view.by or WHOLE) if one.week == week]
    return Rows(FleetWeek.__slots__, [asdict(one) for one in found])


PAGE = Page(
    name="fleet",
    view=FleetView,
    slots=(
        "fleet-title.children",
        "fleet-cards.children",
        "fleet-excluded.children",
        "fleet-latency.figure",
        "fleet-availability.figure",
        "fleet-causes.figure",
        "fleet-segments.children",
        "fleet-found.children",
        "fleet-table.className",
        "fleet-grid.rowData",
    ),
    body=body,
    fill=fill,
    parts=(
        Part("latency", "Latency p99 by week", _weeks_of(LATENCY)),
        Part("availability", "Availability by week", _weeks_of(AVAILABILITY)),
        Part("causes", "What burns the budget", _causes_of),
        Part("clusters", "Clusters of the week", _clusters_of),
        Part("segments", "Segments of the week", _segments_of, has_tools=False),
    ),
)
