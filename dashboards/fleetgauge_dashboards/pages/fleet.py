"""The page of the fleet: service levels over clusters, trends, causes of bad minutes, all clusters."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta

from dash import html

from fleetgauge_dashboards.figures.causes import HEIGHT, plot_burn_causes
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.trend import HEIGHT as TREND_HEIGHT
from fleetgauge_dashboards.figures.trend import plot_segment_trends, plot_trend
from fleetgauge_dashboards.links import FleetView, WhyView, href
from fleetgauge_dashboards.pages.components import (
    Component,
    anchor,
    chart,
    file_link,
    link,
    link_switch,
    panel,
    table,
    tools,
    week_menu,
)
from fleetgauge_dashboards.pages.fleet_table import ROWS_PER_PAGE, clusters_table, to_grid_row
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader import WHOLE_FLEET, ClusterWeek, FleetWeek, LakeReader
from fleetgauge_dashboards.units import format_count
from fleetgauge_dashboards.views.causes import BurnCause, rank_burn_causes
from fleetgauge_dashboards.views.fleet import (
    AVAILABILITY,
    BUDGET,
    LATENCY,
    TREND_WEEKS,
    FleetHeadline,
    FleetOverview,
    build_fleet_overview,
    select_members,
    selected_segment,
)
from fleetgauge_dashboards.views.fleet_rows import TREND_WEEKS as ROW_WEEKS
from fleetgauge_dashboards.views.fleet_rows import ClusterContext
from fleetgauge_dashboards.views.latency_burn import compute_latency_burns
from fleetgauge_dashboards.views.weeks import find_week_of_day

_QUANTILES = ("median", "p90", "p99")
_TITLES = {
    LATENCY: ("Latency p99 over clusters", "fleet_latency"),
    AVAILABILITY: ("Availability over clusters", "fleet_availability"),
    BUDGET: ("Latency budget remaining over clusters", "fleet_budget"),
}


def build_body() -> list[Component]:
    """Return the page's layout."""
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
                    "Causes of bad minutes",
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


def fill(view: FleetView, context: PageContext, theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice if the week or segment does not exist."""
    lake = context.lake
    weeks = lake.weeks()
    week = find_week_of_day(weeks, view.week)
    if week is None:
        return _week_not_found(view, has_weeks=bool(weeks))
    segments = lake.segments()
    if view.by is not None and view.by not in segments:
        whole_fleet = link("Show the whole fleet", replace(view, by=None, value=None))
        return PageNotice(
            f"No segment named {view.by}",
            (f"The fleet has the segments: {', '.join(segments) or 'none'}.", whole_fleet),
        )
    overview = _build_overview(view, context, week)
    burn_causes = rank_burn_causes(lake.burn_causes(week, *selected_segment(view)), week)
    latency, availability = (
        [
            plot_segment_trends(trend.metric, segment_trends, theme)
            for trend, segment_trends in zip(overview.trends, overview.segment_trends, strict=True)
        ]
        if overview.segment_trends
        else [plot_trend(trend, theme) for trend in overview.trends]
    )
    return {
        "fleet-title.children": _title_row(overview, view, segments),
        "fleet-cards.children": [
            _headline_card(headline, _at_week(view, week)) for headline in overview.headlines
        ],
        "fleet-excluded.children": overview.excluded,
        "fleet-latency.figure": latency,
        "fleet-availability.figure": availability,
        "fleet-causes.figure": plot_burn_causes(burn_causes, theme),
        "fleet-segments.children": _segment_panel(overview, view),
        "fleet-found.children": _describe_table(overview, view),
        "fleet-table.className": "" if len(overview.rows) > ROWS_PER_PAGE else "fg-one-page",
        "fleet-grid.rowData": [to_grid_row(row) for row in overview.rows],
    }


def _week_not_found(view: FleetView, has_weeks: bool) -> PageNotice:
    if has_weeks:
        newest_week = link("Show the newest week", replace(view, week=None))
        return PageNotice(f"No week of {view.week:%a %d %b %Y}", ("The lake has other weeks.", newest_week))
    return PageNotice(
        "No week yet",
        ("No week has been computed. It appears with the next batch of fleetgauge stream.",),
    )


def _build_overview(view: FleetView, context: PageContext, week: date) -> FleetOverview:
    lake, freshness, segments = context.lake, context.assess_freshness(), context.fleet.segments
    clusters = select_members(lake.cluster_weeks(week), segments, view)
    cluster_context = ClusterContext(
        context.read_alerts(),
        freshness,
        lake.latency_history(week, ROW_WEEKS),
        compute_latency_burns(lake.recent_minutes(), clusters, context.clock()),
        segments,
    )
    segment_weeks = lake.fleet_weeks(view.by) if view.by and view.value is None else ()
    return build_fleet_overview(
        week, lake.weeks(), clusters, _read_fleet_weeks(lake, view), segment_weeks, cluster_context, view
    )


def _read_fleet_weeks(lake: LakeReader, view: FleetView) -> list[FleetWeek]:
    """Return the weeks of the fleet or of the view's segment value."""
    segment, value = selected_segment(view)
    return [row for row in lake.fleet_weeks(segment) if row.segment_value == value]


def _title_row(overview: FleetOverview, view: FleetView, segments: Sequence[str]) -> list[Component]:
    subject = f"Fleet, {view.by} {view.value}" if view.by and view.value is not None else "Fleet"
    choices = [("whole fleet", replace(view, by=None, value=None), view.by is None)]
    choices += [
        (f"by {segment}", replace(view, by=segment, value=None), view.by == segment) for segment in segments
    ]
    return [
        html.H1(f"{subject}, week of {overview.week:%a %d %b %Y}"),
        html.Span(
            f"{overview.revision_state} · {format_count(overview.clusters, 'cluster')}", className="fg-sub"
        ),
        week_menu([(week, replace(view, week=week)) for week in overview.weeks], overview.week),
        link_switch("Segment", choices) if segments else None,
    ]


def _segment_panel(overview: FleetOverview, view: FleetView) -> Component:
    """Return a table with the quantiles of each segment value, or None without a segment."""
    if not overview.segments:
        return None
    quantile_headings = [
        f"{name} {quantile}" for name in ("Latency", "Availability") for quantile in ("median", "p90", "p99")
    ]
    rows = [
        (
            link(segment.value, segment.view),
            f"{segment.clusters:,}",
            *(
                getattr(headline, quantile)
                for headline in (segment.latency, segment.availability)
                for quantile in _QUANTILES
            ),
            segment.budget.p99,
        )
        for segment in overview.segments
    ]
    headings = (str(view.by).capitalize(), "Clusters", *quantile_headings, "Budget remaining, p99")
    return panel(
        f"This week by {view.by}",
        "segments",
        table(f"By {view.by}", headings, rows),
        tools=[file_link("CSV", view, "segments")],
        class_name="fg-apart",
    )


def _at_week(view: FleetView, week: date) -> FleetView:
    """Return the view at the start of its week; a view of the newest week keeps following it."""
    return view if view.week is None else replace(view, week=week)


def _describe_table(overview: FleetOverview, view: FleetView) -> str:
    """Return which clusters the table lists, empty if it lists all."""
    if len(overview.rows) < overview.matching:
        matching = format_count(overview.matching, "cluster")
        return f"the worst {len(overview.rows):,} of {matching}; search to find others"
    return f"{overview.matching:,} of {format_count(overview.clusters, 'cluster')}" if view.search else ""


def _headline_card(headline: FleetHeadline, view: FleetView) -> Component:
    title, definition = _TITLES[headline.metric]
    quantiles = [_quantile(name, getattr(headline, name), headline, view) for name in _QUANTILES]
    note = html.Div(f"{headline.sample_note} · {headline.week_before}", className="fg-note")
    return panel(title, definition, html.Div([html.Div(quantiles, className="fg-three"), note]))


def _quantile(name: str, value: str, headline: FleetHeadline, view: FleetView) -> Component:
    """Return a quantile as a link to the explanation of the cluster whose value it is."""
    cluster_id = headline.clusters.get(name)
    content: Component = value
    if cluster_id is not None:
        url = href(WhyView(cluster_id, view.week, display=view.display))
        content = anchor(value, url, "fg-quiet", label=f"{name} {value}: explain the week of {cluster_id}")
    return html.Div([html.Div(content, className="fg-big"), html.Div(name, className="fg-label")])


def _weeks_reader(metric: str) -> Callable[[FleetView, PageContext], TableRows]:
    def read_rows(view: FleetView, context: PageContext) -> TableRows:
        """Return the weeks of the chart: of the fleet, or of each value of the segment."""
        lake = context.lake
        week = find_week_of_day(lake.weeks(), view.week)
        by_segment = view.by if view.value is None else None
        fleet_weeks = lake.fleet_weeks(by_segment) if by_segment else _read_fleet_weeks(lake, view)
        since = week - timedelta(days=7 * (TREND_WEEKS - 1)) if week else None
        rows = [
            row
            for row in fleet_weeks
            if row.metric == metric and since and week and since <= row.week <= week
        ]
        rows.sort(key=lambda row: (row.week, row.segment_value))
        return TableRows(FleetWeek.__slots__, [asdict(row) for row in rows])

    return read_rows


def _read_cause_rows(view: FleetView, context: PageContext) -> TableRows:
    """Return the causes of the week's bad minutes."""
    week = find_week_of_day(context.lake.weeks(), view.week)
    causes = rank_burn_causes(context.lake.burn_causes(week, *selected_segment(view)), week) if week else ()
    return TableRows(BurnCause.__slots__, [asdict(cause) for cause in causes])


def _read_cluster_rows(view: FleetView, context: PageContext) -> TableRows:
    """Return every matching cluster-week, including those beyond the table's limit."""
    week = find_week_of_day(context.lake.weeks(), view.week)
    members = select_members(context.lake.cluster_weeks(week), context.fleet.segments, view) if week else ()
    search = (view.search or "").casefold()
    return TableRows(
        ClusterWeek.__slots__,
        [asdict(cluster_week) for cluster_week in members if search in cluster_week.cluster_id.casefold()],
    )


def _read_segment_rows(view: FleetView, context: PageContext) -> TableRows:
    """Return the week's quantiles of every metric and segment value."""
    week = find_week_of_day(context.lake.weeks(), view.week)
    fleet_weeks = [
        fleet_week
        for fleet_week in context.lake.fleet_weeks(view.by or WHOLE_FLEET)
        if fleet_week.week == week
    ]
    return TableRows(FleetWeek.__slots__, [asdict(fleet_week) for fleet_week in fleet_weeks])


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
    build_body=build_body,
    fill=fill,
    parts=(
        PagePart("latency", "Latency p99 by week", _weeks_reader(LATENCY)),
        PagePart("availability", "Availability by week", _weeks_reader(AVAILABILITY)),
        PagePart("causes", "Causes of bad minutes", _read_cause_rows),
        PagePart("clusters", "Clusters of the week", _read_cluster_rows),
        PagePart("segments", "Segments of the week", _read_segment_rows, has_tools=False),
    ),
)
