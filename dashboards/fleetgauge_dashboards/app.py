"""The application: every page over every fleet, behind its defence."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dash import Dash, html
from flask import request

from fleetgauge_dashboards import health, security_headers
from fleetgauge_dashboards.identity import Asked, Login, Person
from fleetgauge_dashboards.links import (
    BrokerView,
    ClusterView,
    FleetView,
    MinuteView,
    QualityView,
    RecoveryView,
    TableView,
    parse,
)
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.pages import (
    alert_actions,
    alerts,
    broker,
    cluster,
    correction_form,
    drill,
    files,
    fleet,
    fleet_table,
    minute,
    numbers,
    quality,
    recovery,
    review,
    shell,
    why,
)
from fleetgauge_dashboards.pages.page import Context, Contexts, register
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.served_fleets import ShownFleet
from fleetgauge_dashboards.single_flight import Patience

_DRAWN = (
    fleet.PAGE,
    cluster.PAGE,
    broker.PAGE,
    minute.PAGE,
    why.PAGE,
    alerts.PAGE,
    recovery.PAGE,
    review.PAGE,
    quality.PAGE,
)
PAGES = (*_DRAWN, numbers.table_of(_DRAWN))

_GRID = ("dash_ag_grid/async-community.js",)
_CHARTS = ("dash/dcc/async-graph.js", "plotly/package_data/plotly.min.js")
#: What pages draw with, which dash asks for only as it comes to draw. What is fetched for nothing, a browser
#: complains of.
_DRAWN_WITH: Mapping[type, tuple[str, ...]] = {
    FleetView: _GRID + _CHARTS,
    TableView: _GRID,
    **dict.fromkeys((ClusterView, BrokerView, MinuteView, RecoveryView, QualityView), _CHARTS),
}


class _Application(Dash):
    """Has the browser fetch at once what the page that is asked for first draws with."""

    def interpolate_index(self, *_: Any, **parts: Any) -> str:
        view = parse(request.path, request.query_string.decode(errors="replace"))
        early = [
            f'<link rel="preload" as="script" href="/_dash-component-suites/{path}">'
            for path in _DRAWN_WITH.get(type(view), ())
        ]
        untyped: Any = super()
        index: str = untyped.interpolate_index(**parts | {"metas": parts["metas"] + "".join(early)})
        return index


def create_app(
    fleets: Sequence[ShownFleet],
    login: Login,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Dash:
    """The pages over one fleet or several of different names. Reads nothing until it is asked."""

    def who() -> Person | None:
        return login.person(Asked(request.headers, request.remote_addr))

    app = _Application(
        "fleetgauge_dashboards",
        title="Fleetgauge",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        enable_mcp=False,
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    first, *others = (Context(fleet, Lake(fleet.lake), clock) for fleet in fleets)
    contexts: Contexts = {None: first} | {one.fleet.name: one for one in (first, *others)}
    patience = Patience()
    lakes = {one.fleet.name: one.lake for one in contexts.values()}
    metrics = DashMetrics(lakes, patience)
    layout = shell.layout()
    app.layout = layout
    # Callbacks may name any page's components, whichever page is there. (Dash types it as None.)
    every: Any = html.Div([layout, *(page.layout() for page in PAGES)])
    app.validation_layout = every
    shell.register(app, PAGES, contexts, patience)
    for page in PAGES:
        register(app, page, contexts, patience, metrics.answered)
    fleet_table.register_search(app)
    drill.register(app, cluster.CHARTS)
    drill.register(app, broker.CHARTS)
    files.register(app, PAGES, contexts)
    review.add_downloads(app.server, contexts)
    alert_actions.register(app, contexts, who)
    correction_form.register(app, contexts, who)
    security_headers.add(app, who)
    health.add(app.server, contexts, patience, metrics.text)
    return app
