"""Navigate from charts: a drag along the time axis zooms, a click on a point opens its minute."""

from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, no_update

from fleetgauge_dashboards.links import BrokerView, ClusterView, View, href
from fleetgauge_dashboards.pages.page import parse_requested_view
from fleetgauge_dashboards.views.cluster import resolve_click, zoom_view

_NO_UPDATE = (no_update, no_update)


def register(app: Dash, charts: Sequence[str]) -> None:
    """Register the callback that changes the URL on a drag or click in one of a page's charts."""

    def navigate(*events_then_url: Any) -> tuple[Any, Any]:
        *_, pathname, search = events_then_url
        view = parse_requested_view(pathname, search)
        if not isinstance(view, ClusterView | BrokerView) or not ctx.triggered:
            return _NO_UPDATE
        event = ctx.triggered[0]
        target = _find_target(view, str(event["prop_id"]), event["value"] or {})
        return _NO_UPDATE if target is None else _split_url(target)

    app.callback(
        Output("url", "pathname", allow_duplicate=True),
        Output("url", "search", allow_duplicate=True),
        *(Input(name, "relayoutData") for name in charts),
        *(Input(name, "clickData") for name in charts),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(navigate)


def _find_target(
    view: ClusterView | BrokerView, chart_property: str, value: Mapping[str, Any]
) -> View | None:
    if chart_property.endswith(".clickData"):
        return resolve_click(view, str(value.get("points", [{}])[0].get("x")))
    return zoom_view(view, value)


def _split_url(view: View) -> tuple[str, str]:
    path, question, query = href(view).partition("?")
    return path, f"{question}{query}"
