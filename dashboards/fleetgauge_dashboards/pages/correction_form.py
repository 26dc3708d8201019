"""Let operators exclude the displayed minutes from the service levels: a form, rows in ops/corrections."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dash import Dash, Input, Output, State, dcc, html, no_update

from fleetgauge_core.lake.correction_effect import explain_ineffective_correction
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.lake.delta_table import is_read_only
from fleetgauge_core.lake.table_store import ReadOnlyLakeError, TableStoreError
from fleetgauge_core.slo.correction_effect import CorrectableFleet
from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_dashboards.identity import User, explain_denial
from fleetgauge_dashboards.links import ClusterView, Span
from fleetgauge_dashboards.pages.components import Component, aria
from fleetgauge_dashboards.pages.page import FleetContexts, PageContext, Slots, parse_requested_view

#: Characters of a reason.
MAX_REASON_LENGTH = 300
#: The slots of the form, which depend on the lake.
SLOTS = ("correct-do.disabled", "correct-read-only.children")
_READ_ONLY = "the lake is read-only here; use fleetgauge correct add where the stream runs."
_log = logging.getLogger("fleetgauge.dash")


def correction_form() -> Component:
    """Return the folded form. Every user sees it; a viewer's submission is rejected."""
    reason = dcc.Input(
        id="correct-reason",
        type="text",
        maxLength=MAX_REASON_LENGTH,
        placeholder="Shown in the weekly review",
        className="fg-input fg-input--wide",
    )
    broker = dcc.Input(
        id="correct-broker", type="number", min=0, step=1, placeholder="all brokers", className="fg-input"
    )
    return html.Details(
        [
            html.Summary("Exclude the displayed minutes from the service levels"),
            html.P(
                "Choose a fixed time range first: drag along a chart, or follow the permanent link. Raw "
                "numbers "
                "stay visible beside corrected ones; fleetgauge correct withdraw undoes a correction.",
                className="fg-note",
            ),
            html.Div(
                [
                    html.Label(["Reason ", reason]),
                    html.Label(["Broker ", broker]),
                    html.Button("Exclude", id="correct-do", n_clicks=0, className="fg-button"),
                ],
                className="fg-form",
            ),
            html.P(id="correct-read-only", className="fg-note"),
            html.Div(id="correct-said", className="fg-said", role="status", **aria(live="polite")),
        ],
        className="fg-menu fg-apart fg-on-hand",
    )


def fill(context: PageContext) -> Slots:
    """Return the form's slots: disabled with the reason if this process cannot write the lake."""
    is_disabled = is_read_only(context.lake.root, CORRECTIONS)
    return dict(zip(SLOTS, (is_disabled, f"Not possible: {_READ_ONLY}" if is_disabled else ""), strict=True))


def register(app: Dash, contexts: FleetContexts, identify_user: Callable[[], User | None]) -> None:
    """Register the form's callback; ``identify_user`` returns the user of the current request."""

    def submit(
        clicks: int | None, reason: str | None, broker: int | None, pathname: str, search: str | None
    ) -> Any:
        view = parse_requested_view(pathname, search)
        context = contexts.get(view.display.fleet) if isinstance(view, ClusterView) else None
        if not clicks or context is None or not isinstance(view, ClusterView):
            return no_update
        return record_correction(context, view, broker, reason or "", identify_user())

    app.callback(
        Output("correct-said", "children"),
        Input("correct-do", "n_clicks"),
        State("correct-reason", "value"),
        State("correct-broker", "value"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )(submit)


def record_correction(
    context: PageContext, view: ClusterView, broker_id: int | None, reason: str, user: User | None
) -> str:
    """Record a correction of the view's time range, and return a message about the result."""
    denial = explain_denial(user)
    if user is None or denial:
        return f"✕ Not excluded: {denial}"
    if not isinstance(view.shown, Span):
        return (
            "✕ Not excluded: the time range is not fixed. Drag along a chart, or follow the permanent link."
        )
    reason = " ".join(reason.split())[:MAX_REASON_LENGTH]
    if not reason:
        return "✕ Not excluded: give a reason."
    lake, span = context.lake, view.shown
    if view.cluster_id not in lake.clusters():
        return f"✕ Not excluded: there is no cluster {view.cluster_id}."
    now = context.clock()
    row = {
        "correction_id": uuid4().hex[:12],
        "scope": "cluster" if broker_id is None else "broker",
        "cluster_id": view.cluster_id,
        "broker_id": broker_id,
        "starts": span.start,
        "ends": span.end,
        "reason": reason,
        "author": user.name,
        "created_at": now,
    }
    try:
        reason_against = explain_ineffective_correction(row, lake.root, _describe_fleet(context), now)
        if reason_against:
            return f"✕ Not excluded, for it would have no effect: {reason_against}."
        CorrectionStore(lake.root).insert(row)
    except ReadOnlyLakeError:
        return f"✕ Not excluded: {_READ_ONLY}"
    except TableStoreError as error:
        return f"✕ Not excluded: {error}"
    _log.info("%s corrected %s: %s", user.name, view.cluster_id, reason)
    return (
        f"● Correction {row['correction_id']} by {user.name} takes effect with the next batch of "
        "fleetgauge stream."
    )


def _describe_fleet(context: PageContext) -> CorrectableFleet:
    """Return the clusters of the fleet file, and those of which the lake alone has weeks."""
    fleet = context.fleet
    clusters = dict.fromkeys(context.lake.clusters(), frozenset[tuple[str, str]]())
    lifetimes = {cluster_id: (None, until) for cluster_id, until in fleet.ends.items()}
    return CorrectableFleet({**clusters, **fleet.segments}, fleet.week_zone, lifetimes)
