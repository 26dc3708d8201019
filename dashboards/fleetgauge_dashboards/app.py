"""The application, and the server that it runs on."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dash import Dash, html
from flask import request
from waitress.server import create_server

from fleetgauge_dashboards import defence, health
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.pages import (
    acknowledging,
    alerts,
    broker,
    cluster,
    drill,
    files,
    fleet,
    minute,
    quality,
    review,
    shell,
    why,
)
from fleetgauge_dashboards.pages.page import Context, Contexts, ShownFleet, register
from fleetgauge_dashboards.people import Asked, Login, Person
from fleetgauge_dashboards.reader import Lake
from fleetgauge_probes.vitals import Vitals

PAGES = (
    fleet.PAGE,
    cluster.PAGE,
    broker.PAGE,
    minute.PAGE,
    why.PAGE,
    alerts.PAGE,
    review.PAGE,
    quality.PAGE,
)
THREADS = 8


def create_app(
    fleets: Sequence[ShownFleet],
    login: Login,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Dash:
    """The pages over one fleet or several of different names. Reads nothing until it is asked."""

    def who() -> Person | None:
        return login.person(Asked(request.headers, request.remote_addr))

    app = Dash(
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
    vitals = Vitals("dash", math.inf)
    metrics = DashMetrics(vitals.registry)
    layout = shell.layout()
    app.layout = layout
    # Callbacks may name any page's components, whichever page is there. (Dash types it as None.)
    every: Any = html.Div([layout, *(page.layout() for page in PAGES)])
    app.validation_layout = every
    shell.register(app, PAGES, contexts)
    for page in PAGES:
        register(app, page, contexts, metrics.answered)
    fleet.register_search(app)
    drill.register(app, cluster.CHARTS)
    drill.register(app, broker.CHARTS)
    files.register(app, PAGES, contexts)
    review.add_downloads(app.server, contexts)
    acknowledging.register(app, contexts, who)
    defence.add(app, who)
    lakes = {one.fleet.name: one.lake for one in (first, *others)}
    metrics.watch(lakes)
    health.add(app.server, lakes, vitals.registry)
    return app


def serve(app: Dash, host: str, port: int, serving: Callable[[str], None]) -> None:
    """Serve until interrupted; ``serving`` is told the URL once the port accepts connections."""
    server = create_server(app.server, host=host, port=port, threads=THREADS, ident="fleetgauge")
    try:
        serving(_url(host, int(server.effective_port)))
        server.run()
    finally:
        server.close()


def _url(host: str, port: int) -> str:
    """An address that a browser on this machine can open."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (read, not bound)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
