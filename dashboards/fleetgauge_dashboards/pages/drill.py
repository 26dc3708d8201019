"""A drag along a time axis is a zoom, a click on a point leads to its minute: both are addresses."""

from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, no_update

from fleetgauge_dashboards.links import BrokerView, ClusterView, View, href, parse
from fleetgauge_dashboards.views.cluster import clicked, zoomed

_NOWHERE = (no_update, no_update)


def register(app: Dash, charts: Sequence[str]) -> None:
    """Of one page's charts."""

    def go(*moves_then_address: Any) -> tuple[Any, Any]:
        *_, pathname, search = moves_then_address
        view = parse(pathname, search or "")
        if not isinstance(view, ClusterView | BrokerView) or not ctx.triggered:
            return _NOWHERE
        moved = ctx.triggered[0]
        to = _led_to(view, str(moved["prop_id"]), moved["value"] or {})
        return _NOWHERE if to is None else _address(to)

    app.callback(
        Output("url", "pathname", allow_duplicate=True),
        Output("url", "search", allow_duplicate=True),
        *(Input(name, "relayoutData") for name in charts),
        *(Input(name, "clickData") for name in charts),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(go)


def _led_to(view: ClusterView | BrokerView, moved: str, value: Mapping[str, Any]) -> View | None:
    if moved.endswith(".clickData"):
        return clicked(view, str(value.get("points", [{}])[0].get("x")))
    return zoomed(view, value)


def _address(view: View) -> tuple[str, str]:
    path, question, query = href(view).partition("?")
    return path, f"{question}{query}"
