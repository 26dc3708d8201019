"""The peer: a bare Dash page with one chart, by the server that serves ours. Prints its URL."""

from typing import Any

from fleetgauge_dashboards.server import address, listening, serve


def _load() -> Any:
    import plotly.graph_objects as go
    from dash import Dash, dcc

    app = Dash("bare", serve_locally=True, enable_mcp=False)
    app.layout = dcc.Graph(figure=go.Figure(go.Scatter(y=[1, 3, 2])))
    return app.server


if __name__ == "__main__":
    listener = listening("127.0.0.1", 0)
    url = address(listener)
    serve(_load, listener, 1, lambda: print(url, flush=True))
