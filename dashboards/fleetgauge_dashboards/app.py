"""The application, and the server that it runs on."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dash import Dash, html
from waitress.server import create_server

from fleetgauge_dashboards import health
from fleetgauge_dashboards.pages import alerts, cluster, fleet, review, shell
from fleetgauge_dashboards.pages.page import Context, Contexts, ShownFleet, register
from fleetgauge_dashboards.reader import Lake

PAGES = (fleet.PAGE, cluster.PAGE, alerts.PAGE, review.PAGE)
THREADS = 8


def create_app(
    fleets: Sequence[ShownFleet], *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Dash:
    """The pages over one fleet or several of different names. Reads nothing until it is asked."""
    app = Dash(
        "fleetgauge_dashboards",
        title="Fleetgauge",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        enable_mcp=False,
    )
    first, *others = (Context(fleet, Lake(fleet.lake), clock) for fleet in fleets)
    contexts: Contexts = {None: first} | {one.fleet.name: one for one in (first, *others)}
    layout = shell.layout()
    app.layout = layout
    # Callbacks may name any page's components, whichever page is there. (Dash types it as None.)
    every: Any = html.Div([layout, *(page.layout() for page in PAGES)])
    app.validation_layout = every
    shell.register(app, PAGES, contexts)
    for page in PAGES:
        register(app, page, contexts)
    fleet.register_search(app)
    cluster.register_zoom(app)
    review.add_downloads(app.server, contexts)
    health.add(app.server, {one.fleet.name: one.lake for one in (first, *others)})
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
