"""An operator takes an alert on: a button on its card, and a row in ops/actions."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from fleetgauge_dashboards.links import AlertsView, parse
from fleetgauge_dashboards.pages.page import Context, Contexts
from fleetgauge_dashboards.pages.parts import Component
from fleetgauge_dashboards.people import Person, Role
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.views.acknowledged import acknowledged, acknowledging
from fleetgauge_dashboards.views.alerts import Alert, alerts
from fleetgauge_pipelines.lakes.kept import KeptTable, KeptTableError
from fleetgauge_pipelines.tables import ACTIONS

_BUTTON = "acknowledge"
_log = logging.getLogger("fleetgauge.dash")


def button(alert: Alert) -> Component:
    return html.Button(
        "Acknowledge", id={"type": _BUTTON, "alert": alert.alert_id}, n_clicks=0, className="fg-button"
    )


def register(app: Dash, contexts: Contexts, who: Callable[[], Person | None]) -> None:
    """``who`` sends the request that is answered."""

    def pressed(_clicks: list[int], pathname: str, search: str | None) -> Any:
        view = parse(pathname, search or "")
        context = contexts.get(view.fleet) if isinstance(view, AlertsView) else None
        # A button that comes onto the page asks too, without a click.
        clicked = bool(ctx.triggered and ctx.triggered[0]["value"])
        if context is None or not clicked or not isinstance(ctx.triggered_id, dict):
            return no_update
        return acknowledge(context, str(ctx.triggered_id["alert"]), who())

    app.callback(
        Output("alerts-said", "children"),
        Input({"type": _BUTTON, "alert": ALL}, "n_clicks"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(pressed)


def acknowledge(context: Context, alert_id: str, person: Person | None) -> str:
    """Done once, however often it is asked for; what is said of it in one line."""
    if person is None or person.role is not Role.OPERATOR:
        name = person.name if person else "nobody"
        return f"✕ Not acknowledged: {name} is a viewer; an operator may."
    lake = context.lake
    try:
        alert = next((one for one in alerts(lake.health_events()) if one.alert_id == alert_id), None)
        if alert is None:
            return "✕ Not acknowledged: there is no such alert."
        actions = KeptTable(lake.root, ACTIONS)
        before = acknowledged(actions.rows()).get(alert_id)
        if before is not None:
            return f"● Already {before.words}."
        actions.add(acknowledging(alert, person.name, context.clock(), str(uuid4())))
    except (LakeError, KeptTableError) as error:
        return f"✕ Not acknowledged: {error}"
    _log.info("%s acknowledged %s: %s", person.name, alert.whom, alert.kind)
    return f"● Acknowledged {alert.kind}: {alert.whom}, as {person.name}."
