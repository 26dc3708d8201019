"""An operator takes an alert on, or judges it: buttons on its card, and rows in ops/actions."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS
from fleetgauge_dashboards.identity import Person, Role
from fleetgauge_dashboards.links import AlertsView, parse
from fleetgauge_dashboards.pages.page import Context, Contexts
from fleetgauge_dashboards.pages.parts import Component
from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.alerts import Alert, alerts
from fleetgauge_dashboards.views.remarks import Judgement, acknowledged, acknowledging, judged, judging

_BUTTON = "remark"
#: What a button says of an alert that is taken on, beside judgements.
_ACKNOWLEDGE = "acknowledge"
_log = logging.getLogger("fleetgauge.dash")


def acknowledge_button(alert: Alert) -> Component:
    return _button("Acknowledge", alert, _ACKNOWLEDGE)


def judge_buttons(alert: Alert) -> list[Component]:
    """Whether it was worth telling: what the week's precision is made of."""
    return [
        _button(f"It was {one.words}" if one is Judgement.RIGHT else "It was a false alarm", alert, one)
        for one in Judgement
    ]


def _button(words: str, alert: Alert, says: str) -> Component:
    return html.Button(
        words, id={"type": _BUTTON, "alert": alert.alert_id, "says": says}, n_clicks=0, className="fg-button"
    )


def register(app: Dash, contexts: Contexts, who: Callable[[], Person | None]) -> None:
    """``who`` sends the request that is answered."""

    def pressed(_clicks: list[int], pathname: str, search: str | None) -> Any:
        view = parse(pathname, search or "")
        context = contexts.get(view.lens.fleet) if isinstance(view, AlertsView) else None
        # A button that comes onto the page asks too, without a click.
        clicked = bool(ctx.triggered and ctx.triggered[0]["value"])
        if view is None or context is None or not clicked or not isinstance(ctx.triggered_id, dict):
            return no_update
        says = ctx.triggered_id["says"]
        judgement = None if says == _ACKNOWLEDGE else Judgement(says)
        return remark(context, str(ctx.triggered_id["alert"]), judgement, who(), context.times(view))

    app.callback(
        Output("alerts-said", "children"),
        Input({"type": _BUTTON, "alert": ALL, "says": ALL}, "n_clicks"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(pressed)


def remark(
    context: Context, alert_id: str, judgement: Judgement | None, person: Person | None, times: Times
) -> str:
    """Acknowledged, without a judgement; said once, however often it is asked for. One line about it."""
    word = "Judged" if judgement else "Acknowledged"
    if person is None or person.role is not Role.OPERATOR:
        name = person.name if person else "nobody"
        return f"✕ Not {word.lower()}: {name} is a viewer; an operator may."
    lake = context.lake
    try:
        alert = next((one for one in alerts(lake.health_events()) if one.alert_id == alert_id), None)
        if alert is None:
            return f"✕ Not {word.lower()}: there is no such alert."
        already = _write(lake, alert, judgement, person, context, times)
    except (LakeError, TableStoreError) as error:
        return f"✕ Not {word.lower()}: {error}"
    if already:
        return f"● Already {already}."
    said = f" {judgement.words}" if judgement else ""
    _log.info("%s %s%s %s: %s", person.name, word.lower(), said, alert.whom, alert.kind)
    return f"● {word}{said}: {alert.kind}, {alert.whom}, as {person.name}."


def _write(
    lake: Lake, alert: Alert, judgement: Judgement | None, person: Person, context: Context, times: Times
) -> str | None:
    """What was said already, in words; None where it is said now."""
    actions = TableStore(lake.root, ACTIONS)
    known = judged(actions.rows()) if judgement else acknowledged(actions.rows())
    before = known.get(alert.alert_id)
    if before is not None and before.judgement is judgement:
        return before.words(times)
    now, action_id = context.clock(), str(uuid4())
    row = (
        judging(alert, judgement, person.name, now, action_id)
        if judgement
        else acknowledging(alert, person.name, now, action_id)
    )
    actions.append([row])
    return None
