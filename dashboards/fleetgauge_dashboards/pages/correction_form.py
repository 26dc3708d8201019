"""An operator takes the minutes that a cluster's page shows out of the levels: a row in ops/corrections."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dash import Dash, Input, Output, State, dcc, html, no_update

from fleetgauge_core.lake.corrections import Corrections
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_dashboards.identity import Person, Role
from fleetgauge_dashboards.links import ClusterView, Span, parse
from fleetgauge_dashboards.pages.page import Context, Contexts
from fleetgauge_dashboards.pages.parts import Component, aria

#: A reason is a sentence.
LONGEST_REASON = 300
_log = logging.getLogger("fleetgauge.dash")


def form() -> Component:
    """Folded away; it is there for everybody, and answers a viewer that they may not."""
    reason = dcc.Input(
        id="correct-reason",
        type="text",
        maxLength=LONGEST_REASON,
        placeholder="Why: the weekly review repeats it",
        className="fg-input fg-input--wide",
    )
    broker = dcc.Input(
        id="correct-broker", type="number", min=0, step=1, placeholder="all brokers", className="fg-input"
    )
    return html.Details(
        [
            html.Summary("Take the minutes shown out of the levels"),
            html.P(
                "Fix them first: drag along a chart, or follow the link to exactly these minutes. The raw "
                "numbers stay beside the corrected ones; fleetgauge correct withdraw lets them count again.",
                className="fg-note",
            ),
            html.Div(
                [
                    html.Label(["Reason ", reason]),
                    html.Label(["Broker ", broker]),
                    html.Button("Take out", id="correct-do", n_clicks=0, className="fg-button"),
                ],
                className="fg-form",
            ),
            html.Div(id="correct-said", className="fg-said", role="status", **aria(live="polite")),
        ],
        className="fg-menu fg-apart fg-on-hand",
    )


def register(app: Dash, contexts: Contexts, who: Callable[[], Person | None]) -> None:
    """``who`` sends the request that is answered."""

    def pressed(
        clicks: int | None, reason: str | None, broker: int | None, pathname: str, search: str | None
    ) -> Any:
        view = parse(pathname, search or "")
        context = contexts.get(view.lens.fleet) if isinstance(view, ClusterView) else None
        if not clicks or context is None or not isinstance(view, ClusterView):
            return no_update
        return correct(context, view, broker, reason or "", who())

    app.callback(
        Output("correct-said", "children"),
        Input("correct-do", "n_clicks"),
        State("correct-reason", "value"),
        State("correct-broker", "value"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(pressed)


def correct(
    context: Context, view: ClusterView, broker_id: int | None, reason: str, person: Person | None
) -> str:
    """What came of it, in one line."""
    if person is None or person.role is not Role.OPERATOR:
        name = person.name if person else "nobody"
        return f"✕ Not taken out: {name} is a viewer; an operator may."
    if not isinstance(view.shown, Span):
        return (
            "✕ Not taken out: the minutes move on. Drag along a chart, or follow the link to exactly these."
        )
    reason = " ".join(reason.split())[:LONGEST_REASON]
    if not reason:
        return "✕ Not taken out: say why."
    lake, span = context.lake, view.shown
    if view.cluster_id not in lake.clusters():
        return f"✕ Not taken out: there is no cluster {view.cluster_id}."
    if broker_id is not None and not _is_measured(context, view, broker_id, span):
        return f"✕ Not taken out: broker {broker_id} has no minute in them."
    row = {
        "correction_id": uuid4().hex[:12],
        "scope": "cluster" if broker_id is None else "broker",
        "cluster_id": view.cluster_id,
        "broker_id": broker_id,
        "starts": span.start,
        "ends": span.end,
        "reason": reason,
        "author": person.name,
        "created_at": context.clock(),
    }
    try:
        Corrections(lake.root).add(row)
    except TableStoreError as error:
        return f"✕ Not taken out: {error}"
    _log.info("%s corrected %s: %s", person.name, view.cluster_id, reason)
    return f"● Correction {row['correction_id']} counts with the stream's next batch, as {person.name}'s."


def _is_measured(context: Context, view: ClusterView, broker_id: int, span: Span) -> bool:
    rows = context.lake.broker_minutes(view.cluster_id, view.leg, span)
    return broker_id in rows["broker_id"].to_pylist()
