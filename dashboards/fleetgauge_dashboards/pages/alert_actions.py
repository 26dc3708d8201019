"""Let operators acknowledge and judge alerts: buttons on an alert, rows in ops/actions."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from fleetgauge_core.lake.delta_table import is_read_only
from fleetgauge_core.lake.table_store import ReadOnlyLakeError, TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS
from fleetgauge_dashboards.identity import User, explain_denial
from fleetgauge_dashboards.links import AlertsView
from fleetgauge_dashboards.pages.components import Component, aria
from fleetgauge_dashboards.pages.page import FleetContexts, PageContext, parse_requested_view
from fleetgauge_dashboards.reader import LakeError, LakeReader
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.alert_remarks import (
    AlertJudgement,
    build_acknowledgement_row,
    build_judgement_row,
    select_acknowledgements,
    select_judgements,
)
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts

_BUTTON = "remark"
#: The value of an acknowledge button; a judge button's value is its judgement.
_ACKNOWLEDGE = "acknowledge"
_READ_ONLY_REASON = "alerts-read-only"
_log = logging.getLogger("fleetgauge.dash")


def acknowledge_button(alert: HealthAlert, is_disabled: bool) -> Component:
    """Return the button that acknowledges an alert."""
    return _button("Acknowledge", alert, _ACKNOWLEDGE, is_disabled)


def judge_buttons(alert: HealthAlert, is_disabled: bool) -> list[Component]:
    """Return the buttons that judge an alert; the week's precision is computed from judgements."""
    return [
        _button(
            f"It was {judgement.label}" if judgement is AlertJudgement.RIGHT else "It was a false alarm",
            alert,
            judgement,
            is_disabled,
        )
        for judgement in AlertJudgement
    ]


def are_remarks_read_only(context: PageContext) -> bool:
    """Return whether this process cannot record remarks in the lake; the buttons are then disabled."""
    return is_read_only(context.lake.root, ACTIONS)


def read_only_reason() -> Component:
    """Return the reason why the buttons are disabled."""
    return html.Span(
        "The lake is read-only here: acknowledge and judge alerts on pages served where the stream runs.",
        id=_READ_ONLY_REASON,
        className="fg-sub",
    )


def _button(label: str, alert: HealthAlert, value: str, is_disabled: bool) -> Component:
    return html.Button(
        label,
        id={"type": _BUTTON, "alert": alert.alert_id, "says": value},
        n_clicks=0,
        className="fg-button",
        disabled=is_disabled,
        **aria(describedby=_READ_ONLY_REASON if is_disabled else None),
    )


def register(app: Dash, contexts: FleetContexts, identify_user: Callable[[], User | None]) -> None:
    """Register the buttons' callback; ``identify_user`` returns the user of the current request."""

    def handle_click(_clicks: list[int], pathname: str, search: str | None) -> Any:
        view = parse_requested_view(pathname, search)
        context = contexts.get(view.display.fleet) if isinstance(view, AlertsView) else None
        # Dash also calls back when buttons are added to the page, without a click.
        is_click = bool(ctx.triggered and ctx.triggered[0]["value"])
        if view is None or context is None or not is_click or not isinstance(ctx.triggered_id, dict):
            return no_update
        value = ctx.triggered_id["says"]
        judgement = None if value == _ACKNOWLEDGE else AlertJudgement(value)
        return record_remark(
            context, str(ctx.triggered_id["alert"]), judgement, identify_user(), context.time_format(view)
        )

    app.callback(
        Output("alerts-said", "children"),
        Input({"type": _BUTTON, "alert": ALL, "says": ALL}, "n_clicks"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(handle_click)


def record_remark(
    context: PageContext,
    alert_id: str,
    judgement: AlertJudgement | None,
    user: User | None,
    times: TimeFormat,
) -> str:
    """Record an acknowledgement, or a judgement if one is given, and return a message about the result.

    Nothing is written if the user is no operator or the alert already has the same remark.
    """
    verb = "Judged" if judgement else "Acknowledged"
    denial = explain_denial(user)
    if user is None or denial:
        return f"✕ Not {verb.lower()}: {denial}"
    lake = context.lake
    try:
        alert = next(
            (alert for alert in fold_alerts(lake.health_events()) if alert.alert_id == alert_id), None
        )
        if alert is None:
            return f"✕ Not {verb.lower()}: no alert has this id; reload the page."
        existing = _write_row(lake, alert, judgement, user, context, times)
    except ReadOnlyLakeError:
        imperative = "judge" if judgement else "acknowledge"
        return (
            f"✕ Not {verb.lower()}: the lake is read-only here; {imperative} the alert on pages served where "
            "the stream runs."
        )
    except (LakeError, TableStoreError) as error:
        return f"✕ Not {verb.lower()}: {error}"
    if existing:
        return f"● Already {existing}."
    judgement_text = f" {judgement.label}" if judgement else ""
    _log.info("%s %s%s %s: %s", user.name, verb.lower(), judgement_text, alert.subject, alert.kind)
    return f"● {verb}{judgement_text}: {alert.kind}, {alert.subject}, as {user.name}."


def _write_row(
    lake: LakeReader,
    alert: HealthAlert,
    judgement: AlertJudgement | None,
    user: User,
    context: PageContext,
    times: TimeFormat,
) -> str | None:
    """Write a row to ops/actions and return None, or return a description of the same earlier remark."""
    actions = TableStore(lake.root, ACTIONS)
    remarks = select_judgements(actions.rows()) if judgement else select_acknowledgements(actions.rows())
    previous = remarks.get(alert.alert_id)
    if previous is not None and previous.judgement is judgement:
        return previous.describe(times)
    now, action_id = context.clock(), str(uuid4())
    row = (
        build_judgement_row(alert, judgement, user.name, now, action_id)
        if judgement
        else build_acknowledgement_row(alert, user.name, now, action_id)
    )
    actions.append([row])
    return None
