"""The frame of every page: navigation, the data's age and coverage, and banners for alerts and problems."""

from dataclasses import replace
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from flask import request

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    DisplayOptions,
    FleetView,
    MinuteView,
    QualityView,
    RecoveryView,
    ReviewView,
    TableView,
    View,
    WhyView,
    href,
    with_display,
)
from fleetgauge_dashboards.pages.components import Component, anchor, aria, help_button, notice
from fleetgauge_dashboards.pages.page import (
    FleetContexts,
    Page,
    PageContext,
    parse_requested_view,
    slot_output,
)
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.single_flight import ResultPendingError, SingleFlight
from fleetgauge_dashboards.times import TimeFormat, is_time_zone
from fleetgauge_dashboards.units import format_duration, format_percent
from fleetgauge_dashboards.views.alert_remarks import select_acknowledgements
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts, select_open_alerts
from fleetgauge_dashboards.views.freshness import NO_DATA, DataAge, Freshness
from fleetgauge_dashboards.views.held_back_weeks import HeldBackWeek, group_held_back_weeks

REFRESH_MS = 10_000
#: Alerts and held-back weeks with their own banner; one more banner counts the rest.
MAX_BANNERS = 3
_PAGE_TITLES: dict[type, str] = {
    FleetView: "Fleet",
    AlertsView: "Alerts",
    RecoveryView: "Recovery",
    ReviewView: "Review",
    QualityView: "Data quality",
}
#: Views that belong to the Fleet entry of the navigation.
_FLEET_VIEWS = (FleetView, ClusterView, BrokerView, MinuteView, WhyView)


def layout() -> Component:
    """Return the layout of the application: the header, and places for banners and the page."""
    return dmc.MantineProvider(
        defaultColorScheme="auto",
        theme={"fontFamily": "system-ui, sans-serif", "primaryColor": "blue"},
        children=[
            dcc.Location(id="url", refresh=False),
            dcc.Interval(id="tick", interval=REFRESH_MS),
            dcc.Interval(id="second", interval=1000),
            dcc.Store(id="fresh"),
            dcc.Store(id="scheme"),
            dcc.Store(id="reader-zone"),
            html.Div(
                [
                    html.Header(_build_header(), className="fg-header"),
                    html.Main([html.Div(id="banners"), html.Div(id="page")], className="fg-main"),
                ],
                id="shell",
            ),
        ],
    )


def _build_header() -> list[Component]:
    status = [
        html.Span("loading", id="age", className="fg-chip", role="status"),
        help_button("age", "age of the data"),
        html.Span(id="recent-coverage", className="fg-chip"),
        help_button("recent_coverage", "coverage of the last hour"),
        html.Span(id="clock", className="fg-clock"),
        html.Nav(id="zones", className="fg-switch fg-on-hand", **aria(label="Time zone")),
        html.Span(id="wall", className="fg-on-hand"),
        dmc.ColorSchemeToggle(
            id="scheme-switch",
            lightIcon=html.Span("☀"),
            darkIcon=html.Span("☾"),
            variant="default",
            size="md",
            **aria(label="Switch between dark and light"),
        ),
    ]
    return [
        html.Span("Fleetgauge", className="fg-brand"),
        html.Nav(id="nav", className="fg-nav fg-on-hand", **aria(label="Pages")),
        html.Nav(id="fleets", className="fg-switch fg-on-hand", **aria(label="Fleets")),
        html.Div(status, className="fg-status"),
    ]


def register(
    app: Dash, pages: tuple[Page, ...], contexts: FleetContexts, single_flight: SingleFlight
) -> None:
    """Register the callbacks that route to pages and refresh the frame."""

    def route(pathname: str, search: str | None) -> Component:
        view = parse_requested_view(pathname, search)
        page = next((page for page in pages if isinstance(view, page.view)), None)
        # For another URL of the same page Dash keeps the components, and the page's callback refills them.
        return _page_not_found(request.script_root) if page is None else page.layout()

    def refresh_frame(
        tick: int | None,  # noqa: ARG001 (a tick only triggers the callback)
        pathname: str,
        search: str | None,
        reader_zone: str | None,
    ) -> dict[str, Any]:
        view = parse_requested_view(pathname, search)
        display = view.display if view else DisplayOptions(prefix=request.script_root)
        context = contexts.get(display.fleet)
        if context is None:
            return _EMPTY_FRAME
        key = ("status", display.prefix, pathname, search, reader_zone)
        try:
            return single_flight.run(key, lambda: _build_frame(view, display, context, contexts, reader_zone))
        except ResultPendingError:
            status = {
                "slow": True,
                "answered": context.clock().isoformat(),
                "title": _format_tab_title(view, 0),
            }
            return dict.fromkeys(_EMPTY_FRAME, no_update) | {"fresh.data": status}

    app.callback(Output("page", "children"), Input("url", "pathname"), State("url", "search"))(route)
    app.callback(
        output={slot: slot_output(slot) for slot in _EMPTY_FRAME},
        inputs={
            "tick": Input("tick", "n_intervals"),
            "pathname": Input("url", "pathname"),
            "search": Input("url", "search"),
            "reader_zone": Input("reader-zone", "data"),
        },
    )(refresh_frame)
    # Dash does not annotate this function.
    clientside: Any = app.clientside_callback
    clientside(
        ClientsideFunction("fleetgauge", "age"),
        Output("age", "children"),
        Output("age", "className"),
        Output("clock", "children"),
        Input("second", "n_intervals"),
        # As an input it would make the clock wait for a pending response.
        State("fresh", "data"),
    )
    clientside(
        ClientsideFunction("fleetgauge", "scheme"),
        Output("scheme", "data"),
        Input("scheme-switch", "computedColorScheme"),
        Input("second", "n_intervals"),
        State("scheme", "data"),
    )
    clientside(
        ClientsideFunction("fleetgauge", "zone"), Output("reader-zone", "data"), Input("url", "pathname")
    )


#: The slots of the frame and their values for an unknown fleet.
_EMPTY_FRAME: dict[str, Any] = {
    "fresh.data": None,
    "recent-coverage.children": "",
    "recent-coverage.className": "fg-chip",
    "banners.children": [],
    "nav.children": [],
    "fleets.children": [],
    "zones.children": [],
    "wall.children": [],
    "shell.className": "",
}


def _build_frame(
    view: View | None,
    display: DisplayOptions,
    context: PageContext,
    contexts: FleetContexts,
    reader_zone: str | None,
) -> dict[str, Any]:
    times = _time_format(view, context)
    banners: list[Component] = _simulated_banner(context)
    try:
        freshness = context.assess_freshness()
        banners += _age_banner(freshness, times)
    except LakeError:
        freshness = NO_DATA  # The page's own notice reports the error.
    banners += [_missing_banner(path) for path in context.lake.missing_tables()]
    try:
        open_alerts = select_open_alerts(fold_alerts(context.lake.health_events()))
    except LakeError as error:
        open_alerts = ()
        banners.append(_banner("bad", [html.Strong("Open alerts are unknown."), html.Span(str(error))]))
    if not isinstance(view, AlertsView):
        banners += _held_back_banners(context, times)
        banners = [*_alert_banners(display, open_alerts, context, times), *banners]
    text, class_name = _format_coverage(freshness)
    age = {
        "age_s": None if freshness.age is None else freshness.age.total_seconds(),
        "ended": freshness.state is DataAge.ENDED,
        "answered": context.clock().isoformat(),
        "title": _format_tab_title(view, len(open_alerts)),
        "zone": times.zone,
    }
    return {
        "fresh.data": age,
        "recent-coverage.children": text,
        "recent-coverage.className": class_name,
        "banners.children": banners,
        "nav.children": _navigation_links(view, display, len(open_alerts)),
        "fleets.children": _fleet_links(context, contexts, display),
        "zones.children": _time_zone_links(view, context, reader_zone),
        "wall.children": _wall_link(view),
        "shell.className": "fg-wall" if display.wall else "",
    }


def _time_zone_links(view: View | None, context: PageContext, reader_zone: str | None) -> list[Component]:
    """Return links to the fleet's time zone, UTC and the browser's, without duplicates."""
    if view is None:
        return []
    fleet_zone, current_zone = context.fleet.week_zone, context.time_format(view).zone
    zones = dict.fromkeys(
        (
            fleet_zone,
            "UTC",
            *((reader_zone,) if reader_zone and is_time_zone(reader_zone) else ()),
            current_zone,
        )
    )
    return [
        anchor(
            zone,
            href(with_display(view, replace(view.display, zone=None if zone == fleet_zone else zone))),
            current="true" if zone == current_zone else None,
        )
        for zone in zones
    ]


def _wall_link(view: View | None) -> list[Component]:
    """Return a link to the wall view, which the Escape key or the URL leaves."""
    if view is None:
        return []
    return [
        anchor(
            "Wall",
            href(with_display(view, replace(view.display, wall=True))),
            "fg-link",
            label="View for a wall screen",
        )
    ]


def _time_format(view: View | None, context: PageContext) -> TimeFormat:
    return context.time_format(view or FleetView())


def _format_tab_title(view: View | None, open_count: int) -> str:
    """Return the title of the browser tab: the number of open alerts, then the page."""
    title = _PAGE_TITLES.get(type(view), "Fleetgauge")
    match view:
        case ClusterView(name) | WhyView(name):
            title = name
        case BrokerView(name, broker_id):
            title = f"{name} broker {broker_id}"
        case MinuteView(name, minute):
            title = f"{name} {minute:%d %b %H:%M} UTC"
        case TableView():
            title = "Table"
    return f"{f'▲ {open_count} open · ' if open_count else ''}{title} · Fleetgauge"


def _navigation_links(view: View | None, display: DisplayOptions, open_count: int) -> list[Component]:
    def navigation_link(text: list[Component], target: View, current: bool) -> Component:
        return anchor(text, href(target), current="page" if current else None)

    badge = [html.Span(f"{open_count} open", className="fg-count")] if open_count else []
    return [
        navigation_link(
            ["Fleet"],
            FleetView(display=display),
            isinstance(view, _FLEET_VIEWS),
        ),
        navigation_link(["Alerts", *badge], AlertsView(display=display), isinstance(view, AlertsView)),
        navigation_link(["Recovery"], RecoveryView(display=display), isinstance(view, RecoveryView)),
        navigation_link(["Review"], ReviewView(display=display), isinstance(view, ReviewView)),
        navigation_link(["Data quality"], QualityView(display=display), isinstance(view, QualityView)),
    ]


def _fleet_links(shown: PageContext, contexts: FleetContexts, display: DisplayOptions) -> list[Component]:
    """Return a link to each fleet if several are served."""
    first = contexts[None].fleet
    fleets = [context.fleet for name, context in contexts.items() if name is not None]
    if len(fleets) < 2:
        return []
    return [
        anchor(
            f"{fleet.name}, simulated" if fleet.simulated else fleet.name,
            href(FleetView(display=replace(display, fleet=None if fleet is first else fleet.name))),
            current="true" if fleet is shown.fleet else None,
        )
        for fleet in fleets
    ]


def _simulated_banner(context: PageContext) -> list[Component]:
    if not context.fleet.simulated:
        return []
    explanation = f"The data of {context.fleet.name} is synthetic, generated by fleetgauge simulate."
    return [_banner("note", [html.Strong("SIMULATED."), html.Span(explanation)])]


def _format_coverage(freshness: Freshness) -> tuple[str, str]:
    if freshness.coverage is None:
        return "coverage unknown", "fg-chip"
    measured = f"{freshness.measured:,} of {freshness.expected:,}"
    text = f"coverage 60 min {format_percent(freshness.coverage, 1)} ({measured})"
    if freshness.coverage < MIN_FLEET_COVERAGE:
        return f"▲ {text}", "fg-chip fg-chip--bad"
    return f"● {text}", "fg-chip fg-chip--good"


def _age_banner(freshness: Freshness, times: TimeFormat) -> list[Component]:
    if freshness.until is None or freshness.age is None or freshness.state is DataAge.FRESH:
        return []
    if freshness.state is DataAge.STALE:
        return [
            _banner(
                "bad",
                [
                    html.Strong(f"▲ STALE: no new data for {format_duration(freshness.age)}."),
                    html.Span(
                        f"The displayed data ends at {times.format_instant(freshness.until)}. "
                        "Check that the agents and fleetgauge stream are running."
                    ),
                ],
            )
        ]
    return [
        _banner(
            "note",
            [
                html.Strong("History."),
                html.Span(
                    f"The data of this lake ends at {times.format_instant(freshness.until)}, "
                    f"{format_duration(freshness.age)} ago; "
                    "it is not live."
                ),
            ],
        )
    ]


def _missing_banner(path: str) -> Component:
    advice = "Its data is missing from the pages. Restore the table, or let the pipeline recreate it."
    return _banner("bad", [html.Strong(f"▲ {path}: this table does not exist."), html.Span(advice)])


def _held_back_banners(context: PageContext, times: TimeFormat) -> list[Component]:
    try:
        held_back = group_held_back_weeks(context.lake.failed_week_checks(), context.lake.weeks())
    except LakeError as error:
        unknown = html.Strong("Whether a week is held back is unknown.")
        return [_banner("bad", [unknown, html.Span(str(error))])]
    banners = [_held_back_banner(week, times) for week in held_back[:MAX_BANNERS]]
    if len(held_back) > MAX_BANNERS:
        banners.append(
            _banner("bad", [html.Strong(f"▲ {len(held_back) - MAX_BANNERS} more weeks are held back.")])
        )
    return banners


def _held_back_banner(held_back_week: HeldBackWeek, times: TimeFormat) -> Component:
    shown_instead = (
        "the last good revision is shown"
        if held_back_week.has_earlier_result
        else "there is no good revision yet"
    )
    return _banner(
        "bad",
        [
            html.Strong(
                f"▲ Week of {held_back_week.week:%a %d %b %Y} is held back since "
                f"{times.format_instant(held_back_week.since)}:"
            ),
            html.Span(f"{', '.join(held_back_week.expectations)}; {shown_instead}"),
        ],
    )


def _alert_banners(
    display: DisplayOptions, open_alerts: tuple[HealthAlert, ...], context: PageContext, times: TimeFormat
) -> list[Component]:
    now = context.clock()
    try:
        acknowledgements = select_acknowledgements(context.lake.actions())
    except LakeError:
        acknowledgements = {}  # Alerts are shown even if acknowledgements cannot be read.
    banners = [
        _banner(
            "bad",
            [
                html.Strong(f"▲ {alert.kind}: {alert.subject}"),
                html.Span(
                    f"since {times.format_instant(alert.opened_at)}, {format_duration(alert.duration(now))}"
                ),
                html.Span(
                    acknowledgements[alert.alert_id].describe(times)
                    if alert.alert_id in acknowledgements
                    else ""
                ),
                anchor("Show the cluster", href(alert.view(display))),
                anchor("Evidence", href(AlertsView(alert_id=alert.alert_id, display=display))),
            ],
        )
        for alert in open_alerts[:MAX_BANNERS]
    ]
    if len(open_alerts) > MAX_BANNERS:
        more = anchor(
            f"▲ {len(open_alerts) - MAX_BANNERS} more open alerts", href(AlertsView(display=display))
        )
        banners.append(_banner("bad", [more]))
    return banners


def _banner(tone: str, children: list[Component]) -> Component:
    return html.Div(
        children, className=f"fg-banner fg-banner--{tone}", role="alert" if tone == "bad" else "status"
    )


def _page_not_found(prefix: str) -> Component:
    fleet = FleetView(display=DisplayOptions(prefix=prefix))
    return notice("Page not found", [anchor("Go to the fleet", href(fleet))])
