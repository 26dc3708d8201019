"""Serves a bare Dash page with one chart on the same server, for comparison, and prints its URL."""

from typing import Any

from fleetgauge_dashboards.server import format_url, open_listener, serve


def _create_application() -> Any:
    import plotly.graph_objects as go
    from dash import Dash, dcc

    app = Dash("bare", serve_locally=True, enable_mcp=False)
    app.layout = dcc.Graph(figure=go.Figure(go.Scatter(y=[1, 3, 2])))
    return app.server


if __name__ == "__main__":
    listener = open_listener("127.0.0.1", 0)
    url = format_url(listener)
    serve(_create_application, listener, 1, lambda: print(url, flush=True))
