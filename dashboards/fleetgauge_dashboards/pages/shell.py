"""What stands on every page: navigation, the data's age, and banners that nobody can miss."""

from dataclasses import replace
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_dashboards.links import (
    PLAIN,
    AlertsView,
    BrokerView,
    ClusterView,
    FleetView,
    Lens,
    MinuteView,
    QualityView,
    RecoveryView,
    ReviewView,
    TableView,
    View,
    WhyView,
    href,
    parse,
    through,
)
from fleetgauge_dashboards.pages.page import Context, Contexts, Page, output
from fleetgauge_dashboards.pages.parts import Component, anchor, aria, help_sign, notice
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.single_flight import Patience, SlowError
from fleetgauge_dashboards.times import Times, is_zone
from fleetgauge_dashboards.units import duration, percent
from fleetgauge_dashboards.views.alerts import Alert, alerts, still_open
from fleetgauge_dashboards.views.freshness import NO_DATA, Age, Freshness
from fleetgauge_dashboards.views.held_back import HeldBack, held_back
from fleetgauge_dashboards.views.remarks import acknowledged

REFRESH_MS = 10_000
#: Banners for so many alerts, and for so many weeks; the rest is a number.
BANNERS = 3
_NAMES: dict[type, str] = {
    FleetView: "Fleet",
    AlertsView: "Alerts",
    RecoveryView: "Recovery",
    ReviewView: "Review",
    QualityView: "Data quality",
}
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
            dcc.Store(id="reader-zone"),
            html.Div(
                [
                    html.Header(_header(), className="fg-header"),
                    html.Main([html.Div(id="banners"), html.Div(id="page")], className="fg-main"),
                ],
                id="shell",
            ),
        ],
    )


def _header() -> list[Component]:
    status = [
        html.Span("loading", id="age", className="fg-chip", role="status"),
        help_sign("age", "age of the data"),
        html.Span(id="recent-coverage", className="fg-chip"),
        help_sign("recent_coverage", "coverage of the last hour"),
        html.Span(id="clock", className="fg-clock"),
        html.Nav(id="zones", className="fg-switch fg-on-hand", **aria(label="Whose times")),
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


def register(app: Dash, pages: tuple[Page, ...], contexts: Contexts, patience: Patience) -> None:
    def route(pathname: str, search: str | None) -> Component:
        view = parse(pathname, search or "")
        found = next((page for page in pages if isinstance(view, page.view)), None)
        # Another address of the same page fills it anew; the page itself stays.
        return _no_such_page() if found is None else found.layout()

    def status(
        tick: int | None,  # noqa: ARG001 (it asks again)
        pathname: str,
        search: str | None,
        reader_zone: str | None,
    ) -> dict[str, Any]:
        view = parse(pathname, search or "")
        context = contexts.get(view.lens.fleet if view else None)
        if context is None:
            return _UNKNOWN
        question = ("status", pathname, search, reader_zone)
        try:
            return patience.ask(question, lambda: _status(view, context, contexts, reader_zone))
        except SlowError:
            told = {"slow": True, "answered": context.clock().isoformat(), "title": _title(view, 0)}
            return dict.fromkeys(_UNKNOWN, no_update) | {"fresh.data": told}

    app.callback(Output("page", "children"), Input("url", "pathname"), State("url", "search"))(route)
    app.callback(
        output={slot: output(slot) for slot in _UNKNOWN},
        inputs={
            "tick": Input("tick", "n_intervals"),
            "pathname": Input("url", "pathname"),
            "search": Input("url", "search"),
            "reader_zone": Input("reader-zone", "data"),
        },
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
    clientside(
        ClientsideFunction("fleetgauge", "zone"), Output("reader-zone", "data"), Input("url", "pathname")
    )


#: Each slot of the frame, and what is in it while nothing is known.
_UNKNOWN: dict[str, Any] = {
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


def _status(
    view: View | None, context: Context, contexts: Contexts, reader_zone: str | None
) -> dict[str, Any]:
    lens, times = view.lens if view else PLAIN, _times(view, context)
    banners: list[Component] = _simulated_banner(context)
    try:
        fresh = context.fresh()
        banners += _age_banner(fresh, times)
    except LakeError:
        fresh = NO_DATA  # the page itself says why
    banners += [_missing_banner(path) for path in context.lake.missing()]
    try:
        opened = still_open(alerts(context.lake.health_events()))
    except LakeError as error:
        opened = ()
        banners.append(_banner("bad", [html.Strong("Open alerts are not known."), html.Span(str(error))]))
    if not isinstance(view, AlertsView):
        banners += _held_back_banners(context, times)
        banners = [*_alert_banners(view, opened, context), *banners]
    text, class_name = _coverage(fresh)
    age = {
        "age_s": None if fresh.age is None else fresh.age.total_seconds(),
        "ended": fresh.state is Age.ENDED,
        "answered": context.clock().isoformat(),
        "title": _title(view, len(opened)),
        "zone": times.zone,
    }
    return {
        "fresh.data": age,
        "recent-coverage.children": text,
        "recent-coverage.className": class_name,
        "banners.children": banners,
        "nav.children": _nav(view, len(opened)),
        "fleets.children": _fleets(context, contexts, lens),
        "zones.children": _zones(view, context, reader_zone),
        "wall.children": _wall(view),
        "shell.className": "fg-wall" if lens.wall else "",
    }


def _zones(view: View | None, context: Context, reader_zone: str | None) -> list[Component]:
    """The fleet's zone, UTC and the reader's own, each once; the one in use is current."""
    if view is None:
        return []
    own, used = context.fleet.week_zone, context.times(view).zone
    offered = dict.fromkeys(
        (own, "UTC", *((reader_zone,) if reader_zone and is_zone(reader_zone) else ()), used)
    )
    return [
        anchor(
            zone,
            href(through(view, replace(view.lens, zone=None if zone == own else zone))),
            current="true" if zone == used else None,
        )
        for zone in offered
    ]


def _wall(view: View | None) -> list[Component]:
    """For a screen that nobody touches; Escape or the address leads back."""
    if view is None:
        return []
    return [
        anchor(
            "Wall", href(through(view, replace(view.lens, wall=True))), "fg-link", label="For a wall screen"
        )
    ]


def _times(view: View | None, context: Context) -> Times:
    return context.times(view or FleetView())


def _title(view: View | None, opened: int) -> str:
    """What the browser's tab says: on call, it is one of many."""
    page = _NAMES.get(type(view), "Fleetgauge")
    match view:
        case ClusterView(name) | WhyView(name):
            page = name
        case BrokerView(name, broker_id):
            page = f"{name} broker {broker_id}"
        case MinuteView(name, minute):
            page = f"{name} {minute:%d %b %H:%M} UTC"
        case TableView():
            page = "Table"
    return f"{f'▲ {opened} open · ' if opened else ''}{page} · Fleetgauge"


def _nav(view: View | None, opened: int) -> list[Component]:
    def entry(text: list[Component], to: View, current: bool) -> Component:
        return anchor(text, href(to), current="page" if current else None)

    lens = view.lens if view else PLAIN
    counted = [html.Span(f"{opened} open", className="fg-count")] if opened else []
    return [
        entry(
            ["Fleet"],
            FleetView(lens=lens),
            isinstance(view, _OF_THE_FLEET),
        ),
        entry(["Alerts", *counted], AlertsView(lens=lens), isinstance(view, AlertsView)),
        entry(["Recovery"], RecoveryView(lens=lens), isinstance(view, RecoveryView)),
        entry(["Review"], ReviewView(lens=lens), isinstance(view, ReviewView)),
        entry(["Data quality"], QualityView(lens=lens), isinstance(view, QualityView)),
    ]


def _fleets(shown: Context, contexts: Contexts, lens: Lens) -> list[Component]:
    """A link to each of several fleets; nothing where there is but one."""
    first = contexts[None].fleet
    others = [context.fleet for name, context in contexts.items() if name is not None]
    if len(others) < 2:
        return []
    return [
        anchor(
            f"{fleet.name}, simulated" if fleet.simulated else fleet.name,
            href(FleetView(lens=replace(lens, fleet=None if fleet is first else fleet.name))),
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


def _age_banner(fresh: Freshness, times: Times) -> list[Component]:
    if fresh.until is None or fresh.age is None or fresh.state is Age.FRESH:
        return []
    if fresh.state is Age.STALE:
        return [
            _banner(
                "bad",
                [
                    html.Strong(f"▲ STALE: no new data for {duration(fresh.age)}."),
                    html.Span(
                        f"All numbers end at {times.instant(fresh.until)}. "
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
                    f"This lake ends at {times.instant(fresh.until)}, {duration(fresh.age)} ago; "
                    "nothing is live."
                ),
            ],
        )
    ]


def _missing_banner(path: str) -> Component:
    said = "What it held is not shown, and not known. Bring it back, or let the pipeline make it anew."
    return _banner("bad", [html.Strong(f"▲ {path}: there is no such table."), html.Span(said)])


def _held_back_banners(context: Context, times: Times) -> list[Component]:
    try:
        held = held_back(context.lake.broken_weeks(), context.lake.weeks())
    except LakeError as error:
        unknown = html.Strong("Whether a week is held back is not known.")
        return [_banner("bad", [unknown, html.Span(str(error))])]
    shown = [_held_back_banner(one, times) for one in held[:BANNERS]]
    if len(held) > BANNERS:
        shown.append(_banner("bad", [html.Strong(f"▲ {len(held) - BANNERS} more weeks are held back.")]))
    return shown


def _held_back_banner(held: HeldBack, times: Times) -> Component:
    instead = "shown is the last good one" if held.shown else "there is no good one yet"
    return _banner(
        "bad",
        [
            html.Strong(f"▲ Week of {held.week:%a %d %b %Y} is held back since {times.instant(held.since)}:"),
            html.Span(f"{', '.join(held.expectations)}; {instead}"),
        ],
    )


def _alert_banners(view: View | None, opened: tuple[Alert, ...], context: Context) -> list[Component]:
    now, lens, times = context.clock(), view.lens if view else PLAIN, _times(view, context)
    try:
        taken = acknowledged(context.lake.actions())
    except LakeError:
        taken = {}  # an alert is told all the same
    shown = [
        _banner(
            "bad",
            [
                html.Strong(f"▲ {alert.kind}: {alert.whom}"),
                html.Span(f"since {times.instant(alert.opened)}, {duration(alert.lasted(now))}"),
                html.Span(taken[alert.alert_id].words(times) if alert.alert_id in taken else ""),
                anchor("Show the cluster", href(alert.view(lens))),
                anchor("Evidence", href(AlertsView(alert_id=alert.alert_id, lens=lens))),
            ],
        )
        for alert in opened[:BANNERS]
    ]
    if len(opened) > BANNERS:
        more = anchor(f"▲ {len(opened) - BANNERS} more open alerts", href(AlertsView(lens=lens)))
        shown.append(_banner("bad", [more]))
    return shown


def _banner(tone: str, children: list[Component]) -> Component:
    return html.Div(
        children, className=f"fg-banner fg-banner--{tone}", role="alert" if tone == "bad" else "status"
    )


def _no_such_page() -> Component:
    return notice("There is no such page", [anchor("Go to the fleet", href(FleetView()))])
