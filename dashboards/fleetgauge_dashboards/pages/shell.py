"""What stands on every page: navigation, the data's age, and banners that nobody can miss."""

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    FleetView,
    MinuteView,
    QualityView,
    ReviewView,
    View,
    WhyView,
    href,
    parse,
)
from fleetgauge_dashboards.pages.page import Context, Contexts, Page
from fleetgauge_dashboards.pages.parts import Component, anchor, aria, help_sign, notice
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.units import duration, instant, percent
from fleetgauge_dashboards.views.acknowledged import acknowledged
from fleetgauge_dashboards.views.alerts import Alert, alerts, still_open
from fleetgauge_dashboards.views.freshness import NO_DATA, Age, Freshness
from fleetgauge_dashboards.views.held_back import HeldBack, held_back
from fleetgauge_pipelines.slo.levels import FLEET_COVERAGE

REFRESH_MS = 10_000
#: Banners for so many alerts, and for so many weeks; the rest is a number.
BANNERS = 3
_NAMES = {FleetView: "Fleet", AlertsView: "Alerts", ReviewView: "Review", QualityView: "Data quality"}
#: What one drills down to from the fleet.
_OF_THE_FLEET = (FleetView, ClusterView, BrokerView, MinuteView, WhyView)


def layout() -> Component:
    return dmc.MantineProvider(
        defaultColorScheme="auto",
        theme={"fontFamily": "system-ui, sans-serif", "primaryColor": "blue"},
        children=[
            dcc.Location(id="url", refresh=False),
            dcc.Interval(id="tick", interval=REFRESH_MS),
            dcc.Interval(id="second", interval=1000),
            dcc.Store(id="fresh"),
            dcc.Store(id="scheme"),
            html.Header(_header(), className="fg-header"),
            html.Main([html.Div(id="banners"), html.Div(id="page")], className="fg-main"),
        ],
    )


def _header() -> list[Component]:
    status = [
        html.Span("loading", id="age", className="fg-chip", role="status"),
        help_sign("age", "age of the data"),
        html.Span(id="recent-coverage", className="fg-chip"),
        help_sign("recent_coverage", "coverage of the last hour"),
        html.Span(id="clock", className="fg-clock"),
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
        html.Nav(id="nav", className="fg-nav", **aria(label="Pages")),
        html.Nav(id="fleets", className="fg-switch", **aria(label="Fleets")),
        html.Div(status, className="fg-status"),
    ]


def register(app: Dash, pages: tuple[Page, ...], contexts: Contexts) -> None:
    def route(pathname: str) -> Component:
        view = parse(pathname, "")
        return next((page.layout() for page in pages if isinstance(view, page.view)), _no_such_page())

    def status(
        tick: int | None,  # noqa: ARG001 (it asks again)
        pathname: str,
        search: str | None,
    ) -> Status:
        view = parse(pathname, search or "")
        context = contexts.get(view.fleet if view else None)
        return _status(view, context, contexts) if context else _UNKNOWN

    app.callback(Output("page", "children"), Input("url", "pathname"))(route)
    app.callback(
        Output("fresh", "data"),
        Output("recent-coverage", "children"),
        Output("recent-coverage", "className"),
        Output("banners", "children"),
        Output("nav", "children"),
        Output("fleets", "children"),
        Input("tick", "n_intervals"),
        Input("url", "pathname"),
        Input("url", "search"),
    )(status)
    # Types end at dash's edge: this one function of it has none.
    clientside: Any = app.clientside_callback
    clientside(
        ClientsideFunction("fleetgauge", "age"),
        Output("age", "children"),
        Output("age", "className"),
        Output("clock", "children"),
        Input("second", "n_intervals"),
        # As an input it would make the clock wait for an answer that is on its way, or never comes.
        State("fresh", "data"),
    )
    clientside(
        ClientsideFunction("fleetgauge", "scheme"),
        Output("scheme", "data"),
        Input("scheme-switch", "computedColorScheme"),
        Input("second", "n_intervals"),
        State("scheme", "data"),
    )


#: The data's age, the coverage chip's text and class, banners, pages, fleets.
Status = tuple[dict[str, Any] | None, str, str, Component, Component, Component]
_UNKNOWN: Status = (None, "", "fg-chip", [], [], [])


def _status(view: View | None, context: Context, contexts: Contexts) -> Status:
    banners: list[Component] = _simulated_banner(context)
    try:
        fresh = context.fresh()
        banners += _age_banner(fresh)
    except LakeError:
        fresh = NO_DATA  # the page itself says why
    try:
        opened = still_open(alerts(context.lake.health_events()))
    except LakeError as error:
        opened = ()
        banners.append(_banner("bad", [html.Strong("Open alerts are not known."), html.Span(str(error))]))
    if not isinstance(view, AlertsView):
        banners += _held_back_banners(context)
        banners = [*_alert_banners(view, opened, context), *banners]
    text, class_name = _coverage(fresh)
    age = {
        "age_s": None if fresh.age is None else fresh.age.total_seconds(),
        "ended": fresh.state is Age.ENDED,
        "answered": context.clock().isoformat(),
        "title": _title(view, len(opened)),
    }
    return age, text, class_name, banners, _nav(view, len(opened)), _fleets(context, contexts)


def _title(view: View | None, opened: int) -> str:
    """What the browser's tab says: on call, it is one of many."""
    page = {FleetView: "Fleet", AlertsView: "Alerts", ReviewView: "Review", QualityView: "Data quality"}.get(
        type(view), "Fleetgauge"
    )
    match view:
        case ClusterView(name) | WhyView(name):
            page = name
        case BrokerView(name, broker_id):
            page = f"{name} broker {broker_id}"
        case MinuteView(name, minute):
            page = f"{name} {minute:%d %b %H:%M}"
    return f"{f'▲ {opened} open · ' if opened else ''}{page} · Fleetgauge"


def _nav(view: View | None, opened: int) -> list[Component]:
    def entry(text: list[Component], to: View, current: bool) -> Component:
        return anchor(text, href(to), current="page" if current else None)

    fleet = view.fleet if view else None
    counted = [html.Span(f"{opened} open", className="fg-count")] if opened else []
    return [
        entry(
            ["Fleet"],
            FleetView(fleet=fleet),
            isinstance(view, FleetView | ClusterView | BrokerView | MinuteView | WhyView),
        ),
        entry(["Alerts", *counted], AlertsView(fleet=fleet), isinstance(view, AlertsView)),
        entry(["Review"], ReviewView(fleet=fleet), isinstance(view, ReviewView)),
        entry(["Data quality"], QualityView(fleet=fleet), isinstance(view, QualityView)),
    ]


def _fleets(shown: Context, contexts: Contexts) -> list[Component]:
    """A link to each of several fleets; nothing where there is but one."""
    first = contexts[None].fleet
    others = [context.fleet for name, context in contexts.items() if name is not None]
    if len(others) < 2:
        return []
    return [
        anchor(
            f"{fleet.name}, simulated" if fleet.simulated else fleet.name,
            href(FleetView(fleet=None if fleet is first else fleet.name)),
            current="true" if fleet is shown.fleet else None,
        )
        for fleet in others
    ]


def _simulated_banner(context: Context) -> list[Component]:
    if not context.fleet.simulated:
        return []
    said = f"Nothing of {context.fleet.name} was measured: fleetgauge simulate made it up."
    return [_banner("note", [html.Strong("SIMULATED."), html.Span(said)])]


def _coverage(fresh: Freshness) -> tuple[str, str]:
    if fresh.coverage is None:
        return "coverage unknown", "fg-chip"
    text = f"coverage 60 min {percent(fresh.coverage, 1)} ({fresh.measured:,} of {fresh.expected:,})"
    if fresh.coverage < FLEET_COVERAGE:
        return f"▲ {text}", "fg-chip fg-chip--bad"
    return f"● {text}", "fg-chip fg-chip--good"


def _age_banner(fresh: Freshness) -> list[Component]:
    if fresh.until is None or fresh.age is None or fresh.state is Age.FRESH:
        return []
    if fresh.state is Age.STALE:
        return [
            _banner(
                "bad",
                [
                    html.Strong(f"▲ STALE: no new data for {duration(fresh.age)}."),
                    html.Span(
                        f"All numbers end at {instant(fresh.until)}. "
                        "Check that the agents and fleetgauge stream run."
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
                    f"This lake ends at {instant(fresh.until)}, {duration(fresh.age)} ago; nothing is live."
                ),
            ],
        )
    ]


def _held_back_banners(context: Context) -> list[Component]:
    try:
        held = held_back(context.lake.broken_weeks(), context.lake.weeks())
    except LakeError as error:
        unknown = html.Strong("Whether a week is held back is not known.")
        return [_banner("bad", [unknown, html.Span(str(error))])]
    shown = [_held_back_banner(one) for one in held[:BANNERS]]
    if len(held) > BANNERS:
        shown.append(_banner("bad", [html.Strong(f"▲ {len(held) - BANNERS} more weeks are held back.")]))
    return shown


def _held_back_banner(held: HeldBack) -> Component:
    instead = "shown is the last good one" if held.shown else "there is no good one yet"
    return _banner(
        "bad",
        [
            html.Strong(f"▲ Week of {held.week:%a %d %b %Y} is held back since {instant(held.since)}:"),
            html.Span(f"{', '.join(held.expectations)}; {instead}"),
        ],
    )


def _alert_banners(view: View | None, opened: tuple[Alert, ...], context: Context) -> list[Component]:
    now, fleet = context.clock(), view.fleet if view else None
    try:
        taken = acknowledged(context.lake.actions())
    except LakeError:
        taken = {}  # an alert is told all the same
    shown = [
        _banner(
            "bad",
            [
                html.Strong(f"▲ {alert.kind}: {alert.whom}"),
                html.Span(f"since {instant(alert.opened)}, {duration(alert.lasted(now))}"),
                html.Span(taken[alert.alert_id].words if alert.alert_id in taken else ""),
                anchor("Show the cluster", href(alert.view(fleet))),
                anchor("Evidence", href(AlertsView(alert_id=alert.alert_id, fleet=fleet))),
            ],
        )
        for alert in opened[:BANNERS]
    ]
    if len(opened) > BANNERS:
        more = anchor(f"▲ {len(opened) - BANNERS} more open alerts", href(AlertsView(fleet=fleet)))
        shown.append(_banner("bad", [more]))
    return shown


def _banner(tone: str, children: list[Component]) -> Component:
    return html.Div(
        children, className=f"fg-banner fg-banner--{tone}", role="alert" if tone == "bad" else "status"
    )


def _no_such_page() -> Component:
    return notice("There is no such page", [anchor("Go to the fleet", href(FleetView()))])
