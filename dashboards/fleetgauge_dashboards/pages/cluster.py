"""The page of a cluster: the week's service levels, and charts by minute and broker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date
from difflib import get_close_matches

import pyarrow as pa
from dash import html

from fleetgauge_core import tables
from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.figures.brokers import SKEW_HEIGHT, plot_heatmap, plot_leader_latency, plot_skew
from fleetgauge_dashboards.figures.burn_down import HEIGHT as BURN_DOWN_HEIGHT
from fleetgauge_dashboards.figures.burn_down import plot_burn_down
from fleetgauge_dashboards.figures.minutes import (
    compute_worst_homes_height,
    plot_availability,
    plot_latency,
    plot_worst_homes,
)
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.time_series import ChartContext
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    MinuteView,
    Span,
    WhyView,
    Window,
)
from fleetgauge_dashboards.pages import correction_form
from fleetgauge_dashboards.pages.chart_context import build_chart_context, list_excluded_spans
from fleetgauge_dashboards.pages.components import (
    Component,
    aria,
    chart,
    key_figure_card,
    link,
    link_switch,
    panel,
    table,
    time_range_row,
    tools,
    week_menu,
)
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader import ClusterWeek, LakeReader, UnreadableError
from fleetgauge_dashboards.reader.lake import BROKER_MINUTE_COLUMNS, CLUSTER_MINUTE_COLUMNS, TABLE_MISSING
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import (
    NO_VALUE,
    format_count,
    format_duration,
    format_milliseconds,
    format_percent,
)
from fleetgauge_dashboards.views.bad_periods import is_bad_minute
from fleetgauge_dashboards.views.burn_down import BurnDown, compute_burn_down
from fleetgauge_dashboards.views.cluster import (
    moving_window_end,
    resolve_span,
    resolve_week_and_span,
    trim_to_first_minute,
    week_key_figures,
    week_span,
    worst_minutes,
)
from fleetgauge_dashboards.views.deciding_minutes import Row, find_worst_home
from fleetgauge_dashboards.views.fleet import describe_revision_state
from fleetgauge_dashboards.views.minutes import (
    BrokerTimelines,
    ClusterTimeline,
    build_broker_timelines,
    build_timeline,
)

_CHARTS = ("latency", "worst", "heatmap", "leader", "skew", "availability", "budget")
CHARTS = tuple(f"cluster-{name}" for name in _CHARTS)
#: Clusters suggested for an unknown cluster id.
MAX_SUGGESTIONS = 20


def build_body() -> list[Component]:
    """Return the page's layout."""

    def chart_panel(
        name: str,
        title: str,
        definition: str,
        height: int,
        label: str,
        end: Component = None,
        below: Component = None,
    ) -> Component:
        figure = chart(f"cluster-{name}", height, label)
        chart_tools = tools("cluster", name, f"cluster-{name}")
        return panel(title, definition, html.Div([figure, below]), end=end, tools=chart_tools)

    return [
        html.Div(id="cluster-title", className="fg-titlerow"),
        html.Div(id="cluster-cards", className="fg-cards"),
        html.Div(id="cluster-span", className="fg-titlerow"),
        html.Div(
            [
                chart_panel(
                    "latency",
                    "Latency p99 of the worst broker, log scale",
                    "latency_chart",
                    250,
                    "Latency of each minute against the objective",
                ),
                chart_panel(
                    "worst",
                    "Worst broker of each minute",
                    "worst_homes",
                    compute_worst_homes_height(3),
                    "The worst broker of each minute",
                ),
                chart_panel(
                    "heatmap",
                    "Brokers by minute, p99 with failures",
                    "heatmap",
                    144,
                    "Latency by broker and minute",
                    end=html.Div(id="cluster-leg"),
                    below=html.Nav(id="cluster-brokers", className="fg-brokers", **aria(label="Brokers")),
                ),
                chart_panel(
                    "leader",
                    "Leader leg p99 of each broker, log scale",
                    "leader_lines",
                    230,
                    "Acknowledgement latency by broker",
                ),
                chart_panel(
                    "skew",
                    "Skew of the leader leg: slowest broker relative to the median broker",
                    "skew",
                    SKEW_HEIGHT,
                    "Ratio of the slowest to the median broker by minute",
                ),
                chart_panel(
                    "availability",
                    "Availability, pooled over brokers",
                    "availability_chart",
                    170,
                    "Availability of each minute",
                ),
                chart_panel(
                    "budget",
                    "Latency error budget of the week",
                    "burn_down",
                    BURN_DOWN_HEIGHT,
                    "Remaining error budget over the week",
                ),
                panel("Worst minutes of the time range", "minute_latency", html.Div(id="cluster-minutes")),
            ],
            className="fg-panels fg-panels--wide",
        ),
        correction_form.correction_form(),
    ]


def fill(view: ClusterView, context: PageContext, theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice if the cluster or week does not exist.

    Raises: LakeError when the lake cannot be read.
    """
    lake = context.lake
    weeks = lake.weeks_of_cluster(view.cluster_id)
    requested_view = view
    view, week = _resolve_view(view, context)
    if week is None:
        return _week_not_found(requested_view) if weeks else _cluster_not_found(view, lake)
    rows, chart_context = _read_minutes(view, context)
    minutes = build_timeline(rows, chart_context.span, week.latency_objective_us, lake.first_minute())
    leader_leg, shown_leg = (
        _build_brokers(view, leg, chart_context.span, lake) for leg in (Leg.LEADER, view.leg)
    )
    week_context = build_chart_context(view, week_span(week.week, context.fleet.week_zone), context)
    figures = {
        "latency": plot_latency(minutes, chart_context, theme),
        "worst": plot_worst_homes(minutes, chart_context, theme),
        "heatmap": plot_heatmap(shown_leg, view.leg, minutes.objective_ms, chart_context, theme),
        "leader": plot_leader_latency(leader_leg, chart_context, theme),
        "skew": plot_skew(leader_leg, chart_context, theme),
        "availability": plot_availability(minutes, chart_context, theme),
        "budget": plot_burn_down(
            _compute_week_burn_down(view, week, week_context.span, context), week_context, theme
        ),
    }
    worst = worst_minutes(rows.to_pylist(), week.latency_objective_us)
    return {
        "cluster-title.children": _title_row(view, week, weeks, context.fleet.week_zone),
        "cluster-cards.children": [key_figure_card(figure) for figure in week_key_figures(week)],
        "cluster-span.children": _span_row(view, week, chart_context, minutes),
        "cluster-leg.children": _leg_switch(view),
        "cluster-brokers.children": _broker_links(view, [row.broker_id for row in leader_leg.brokers]),
        "cluster-minutes.children": _worst_minutes_table(
            view, worst, chart_context.times, has_minutes=bool(len(rows))
        ),
        **{f"cluster-{name}.figure": figure for name, figure in figures.items()},
        **correction_form.fill(context),
    }


def _resolve_view(view: ClusterView, context: PageContext) -> tuple[ClusterView, ClusterWeek | None]:
    weeks, zone = context.lake.weeks_of_cluster(view.cluster_id), context.fleet.week_zone
    return resolve_week_and_span(
        view, weeks, zone, moving_window_end(context.assess_freshness(), context.clock())
    )


def _read_minutes(view: ClusterView, context: PageContext) -> tuple[pa.Table, ChartContext]:
    """Return the cluster-minutes of the time range and the context of their charts."""
    span = resolve_span(view, context.assess_freshness(), context.clock())
    rows = context.lake.cluster_minutes(view.cluster_id, span)
    span = trim_to_first_minute(view, span, min(rows["minute"].to_pylist(), default=None))
    return rows, build_chart_context(view, span, context)


def _build_brokers(view: ClusterView, leg: Leg, span: Span, lake: LakeReader) -> BrokerTimelines:
    return build_broker_timelines(lake.broker_minutes(view.cluster_id, leg, span), span)


def _compute_week_burn_down(
    view: ClusterView, week: ClusterWeek, span: Span, context: PageContext
) -> BurnDown | None:
    """Return the burn-down of the whole week, whichever time range is shown."""
    rows = context.lake.cluster_minutes(view.cluster_id, span)
    return compute_burn_down(rows, week, span, list_excluded_spans(view.cluster_id, span, context))


def _week_not_found(view: ClusterView) -> PageNotice:
    newest_week = link("Show its newest week", ClusterView(view.cluster_id, display=view.display))
    return PageNotice(
        f"{view.cluster_id} has no week of {view.week:%a %d %b %Y}", ("It has other weeks.", newest_week)
    )


def _cluster_not_found(view: ClusterView, lake: LakeReader) -> PageNotice:
    """Return a notice with the most similar cluster ids.

    Raises: UnreadableError when the table of cluster-weeks does not exist.
    """
    if (path := tables.CLUSTER_WEEKS.path) in lake.missing_tables():
        raise UnreadableError(path, TABLE_MISSING)
    cluster_ids = lake.clusters()
    similar = (
        get_close_matches(view.cluster_id, cluster_ids, MAX_SUGGESTIONS, cutoff=0)
        or cluster_ids[:MAX_SUGGESTIONS]
    )
    return PageNotice(
        f"No cluster named {view.cluster_id}",
        (
            "This lake has no week of it: check the spelling, or wait until its first minute is processed. "
            f"The lake has {format_count(len(cluster_ids), 'cluster')}"
            f"{'; the most similar names are:' if cluster_ids else '.'}",
            html.Ul(
                [html.Li(link(cluster, ClusterView(cluster, display=view.display))) for cluster in similar]
            ),
        ),
    )


def _title_row(
    view: ClusterView, week: ClusterWeek, weeks: tuple[ClusterWeek, ...], zone: str
) -> list[Component]:
    weeks_desc = sorted((row.week for row in weeks), reverse=True)
    reason = f" ({week.revision_reason})" if week.revision > 1 and week.revision_reason else ""
    menu = [(day, _at_week(view, day, day == weeks_desc[0], zone)) for day in weeks_desc]
    return [
        html.H1(f"{view.cluster_id}, week of {week.week:%a %d %b %Y}"),
        html.Span(f"{describe_revision_state([week])}{reason}", className="fg-sub"),
        week_menu(menu, week.week),
        link("Explain this week", WhyView(view.cluster_id, week.week, display=view.display)),
        link("Alerts of this cluster", AlertsView(view.cluster_id, display=view.display)),
    ]


def _at_week(view: ClusterView, week: date, is_newest: bool, zone: str) -> ClusterView:
    """Return the view at another week: the newest hour for the newest week, else the whole week."""
    if is_newest:
        return replace(view, week=None, shown=Window.HOUR)
    return replace(view, week=week, shown=week_span(week, zone))


def _span_row(
    view: ClusterView, week: ClusterWeek, chart_context: ChartContext, minutes: ClusterTimeline
) -> list[Component]:
    step = minutes.grid.step_min
    facts = [
        f"bad minutes: {minutes.bad_minutes}" if minutes.minutes_held else "",
        f"not measured: {format_duration(minutes.unmeasured)}" if minutes.unmeasured else "",
        "" if step == 1 else f"each point is the worst of {step} minutes",
    ]
    row = time_range_row(view, chart_context.span, chart_context.times, *facts)
    if minutes.held_since is None:
        return row
    retention = f"minutes are kept from {chart_context.times.format_minute(minutes.held_since)} on: "
    evidence = link("evidence of earlier minutes", WhyView(view.cluster_id, week.week, display=view.display))
    return [*row, html.Span([retention, evidence], className="fg-sub")]


def _broker_links(view: ClusterView, broker_ids: Sequence[int]) -> list[Component]:
    """Return links to the brokers of the heatmap, since labels of a figure cannot be links."""
    return [
        link(f"broker {broker_id}", BrokerView(view.cluster_id, broker_id, view.shown, display=view.display))
        for broker_id in broker_ids
    ]


def _worst_minutes_table(
    view: ClusterView, minutes: Sequence[Row], times: TimeFormat, has_minutes: bool
) -> Component:
    if not minutes:
        text = (
            "No minute of the time range exceeded the objective."
            if has_minutes
            else "There are no minutes in this time range."
        )
        return html.P(text, className="fg-note")
    rows = [
        (
            link(times.format_minute(at), MinuteView(view.cluster_id, at, display=view.display)),
            format_milliseconds(row["latency_p99_censored_us"]),
            format_milliseconds(row["latency_p99_us"]),
            NO_VALUE if (home := find_worst_home(row)) is None else f"broker {home}",
            format_percent(row["availability_pooled"]),
        )
        for row in minutes
        for at in (row["minute"].astimezone(UTC),)
    ]
    headings = ("Minute", "p99 with failures", "p99 of successes", "Worst broker", "Availability")
    return table("Worst minutes", headings, rows)


def _leg_switch(view: ClusterView) -> Component:
    labels = {Leg.CLIENT: "client leg: as clients experience it", Leg.LEADER: "leader leg: each broker alone"}
    return link_switch("Leg", [(labels[leg], replace(view, leg=leg), leg is view.leg) for leg in Leg])


def _read_latency_rows(view: ClusterView, context: PageContext) -> TableRows:
    """Return the cluster-minutes of the time range as stored in silver, and whether each is bad."""
    view, week = _resolve_view(view, context)
    rows, _ = _read_minutes(view, context)
    minutes = rows.sort_by("minute").to_pylist()
    objective_us = week.latency_objective_us if week else None
    return TableRows(
        (*CLUSTER_MINUTE_COLUMNS, "bad"), [row | {"bad": is_bad_minute(row, objective_us)} for row in minutes]
    )


def _broker_rows_reader(leg: Leg | None) -> Callable[[ClusterView, PageContext], TableRows]:
    def read_rows(view: ClusterView, context: PageContext) -> TableRows:
        """Return the broker-minutes of the leg, or of the displayed leg."""
        view, _ = _resolve_view(view, context)
        _, chart_context = _read_minutes(view, context)
        table = context.lake.broker_minutes(view.cluster_id, leg or view.leg, chart_context.span)
        return TableRows(
            BROKER_MINUTE_COLUMNS,
            table.sort_by([("minute", "ascending"), ("broker_id", "ascending")]).to_pylist(),
        )

    return read_rows


def _read_skew_rows(view: ClusterView, context: PageContext) -> TableRows:
    view, _ = _resolve_view(view, context)
    _, chart_context = _read_minutes(view, context)
    brokers = _build_brokers(view, Leg.LEADER, chart_context.span, context.lake)
    steps = zip(brokers.grid.step_starts, brokers.skew, strict=True)
    return TableRows(
        ("from", "slowest_over_median"), [{"from": at, "slowest_over_median": skew} for at, skew in steps]
    )


def _read_budget_rows(view: ClusterView, context: PageContext) -> TableRows:
    view, week = _resolve_view(view, context)
    span = week_span(week.week, context.fleet.week_zone) if week else None
    burn_down = _compute_week_burn_down(view, week, span, context) if week and span else None
    hours = zip(burn_down.at, burn_down.left, strict=True) if burn_down else ()
    return TableRows(("at", "left_minutes"), [{"at": at, "left_minutes": left} for at, left in hours])


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
        *correction_form.SLOTS,
    ),
    build_body=build_body,
    fill=fill,
    parts=(
        PagePart("latency", "Cluster-minutes", _read_latency_rows),
        PagePart("worst", "Worst broker by minute", _read_latency_rows),
        PagePart("heatmap", "Broker-minutes of the leg shown", _broker_rows_reader(None)),
        PagePart("leader", "Broker-minutes of the leader leg", _broker_rows_reader(Leg.LEADER)),
        PagePart("skew", "Skew of the leader leg", _read_skew_rows),
        PagePart("availability", "Cluster-minutes", _read_latency_rows),
        PagePart("budget", "Latency budget by hour", _read_budget_rows),
    ),
)
