"""Create the Dash application: all pages of all served fleets, security headers, health endpoints."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dash import Dash, html
from flask import request

from fleetgauge_dashboards import health, operator_link, security_headers
from fleetgauge_dashboards.identity import Login
from fleetgauge_dashboards.links import (
    BrokerView,
    ClusterView,
    FleetView,
    MinuteView,
    QualityView,
    RecoveryView,
    TableView,
    parse_view,
)
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.pages import (
    alert_actions,
    alerts,
    broker,
    chart_navigation,
    cluster,
    correction_form,
    files,
    fleet,
    fleet_table,
    minute,
    quality,
    recovery,
    review,
    shell,
    table_page,
    why,
)
from fleetgauge_dashboards.pages.page import FleetContexts, PageContext, register
from fleetgauge_dashboards.path_prefix import PathPrefix
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.single_flight import SingleFlight
from fleetgauge_dashboards.site_address import LOCAL_SITE, SiteAddress

_CONTENT_PAGES = (
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
PAGES = (*_CONTENT_PAGES, table_page.build_table_page(_CONTENT_PAGES))

_GRID_SCRIPTS = ("dash_ag_grid/async-community.js",)
_CHART_SCRIPTS = ("dash/dcc/async-graph.js", "plotly/package_data/plotly.min.js")
#: Scripts that Dash requests only when a page first renders a chart or table. A page preloads only those that
#: it needs, since browsers warn about unused preloads.
_PRELOADED_SCRIPTS: Mapping[type, tuple[str, ...]] = {
    FleetView: _GRID_SCRIPTS + _CHART_SCRIPTS,
    TableView: _GRID_SCRIPTS,
    **dict.fromkeys((ClusterView, BrokerView, MinuteView, RecoveryView, QualityView), _CHART_SCRIPTS),
}


#: Stands for the prefix of the request in every address that Dash writes into the index page.
_PREFIX_MARK = "/--prefix--"
#: The same in JSON, in which Dash escapes slashes.
_ESCAPED_PREFIX_MARK = _PREFIX_MARK.replace("/", "\\u002f")


class _PrefixedDash(Dash):
    """A Dash application whose index page has the request's prefix in all addresses.

    It also preloads the scripts of the requested page.
    """

    def interpolate_index(self, *_: Any, **parts: Any) -> str:
        """Return the index page of the request."""
        view = parse_view(request.path, request.query_string.decode(errors="replace"))
        preload_links = [
            f'<link rel="preload" as="script" href="{_PREFIX_MARK}/_dash-component-suites/{path}">'
            for path in _PRELOADED_SCRIPTS.get(type(view), ())
        ]
        untyped: Any = super()
        index: str = untyped.interpolate_index(**parts | {"metas": parts["metas"] + "".join(preload_links)})
        for mark in (_PREFIX_MARK, _ESCAPED_PREFIX_MARK):
            index = index.replace(mark, request.script_root)
        return index


def create_app(
    fleets: Sequence[ServedFleet],
    login: Login,
    *,
    site: SiteAddress = LOCAL_SITE,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Dash:
    """Return the Dash application for fleets of distinct names; it reads no lake before the first request."""
    app = _PrefixedDash(
        "fleetgauge_dashboards",
        requests_pathname_prefix=f"{_PREFIX_MARK}/",
        routes_pathname_prefix="/",
        title="Fleetgauge",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        enable_mcp=False,
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    first, *rest = (PageContext(fleet, LakeReader(fleet.lake), clock) for fleet in fleets)
    contexts: FleetContexts = {None: first} | {context.fleet.name: context for context in (first, *rest)}
    single_flight = SingleFlight()
    lakes = {context.fleet.name: context.lake for context in contexts.values()}
    metrics = DashMetrics(lakes, single_flight)
    layout = shell.layout()
    app.layout = layout
    # Callbacks refer to components of all pages, whichever page is shown. (Dash annotates the attribute as
    # None.)
    all_layouts: Any = html.Div([layout, *(page.layout() for page in PAGES)])
    app.validation_layout = all_layouts
    shell.register(app, PAGES, contexts, single_flight)
    for page in PAGES:
        register(app, page, contexts, single_flight, metrics.observe_response)
    fleet_table.register_search(app)
    chart_navigation.register(app, cluster.CHARTS)
    chart_navigation.register(app, broker.CHARTS)
    files.register(app, PAGES, contexts)
    review.register_downloads(app.server, contexts)
    operator_link.register(app.server, login)
    identify_user = security_headers.identify_requests(login, site)
    alert_actions.register(app, contexts, identify_user)
    correction_form.register(app, contexts, identify_user)
    security_headers.install(app, login, site, identify_user)
    health.register_endpoints(app.server, contexts, single_flight, metrics.render)
    untyped_server: Any = app.server
    untyped_server.wsgi_app = PathPrefix(app.server.wsgi_app, site)
    return app
