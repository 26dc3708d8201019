"""What a page is, and the one way in which every page is kept fresh."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from fleetgauge_dashboards.figures.theme import Theme, theme
from fleetgauge_dashboards.links import FleetView, View, href, parse
from fleetgauge_dashboards.pages.parts import Component, anchor, notice
from fleetgauge_dashboards.pages.shared import Shared
from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.reader.lake import newest_measured
from fleetgauge_dashboards.views.freshness import Freshness, freshness
from fleetgauge_probes.fleet import Fleet

AGENT_LATE_US = round(1000 * Fleet.model_fields["agent_late_ms"].default)

#: What a page's slots are filled with: "component.property" -> value.
Slots = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownFleet:
    """A fleet that is served: its name, its lake (a folder or an object store's URI), its weeks' zone.

    A vantage that sent later than ``agent_late_us`` is left out of pooled samples, as in silver.
    """

    name: str
    lake: str
    week_zone: str = "UTC"
    simulated: bool = False
    agent_late_us: int = AGENT_LATE_US


@dataclass(frozen=True, slots=True)
class Context:
    """What pages read: the fleet's lake, and the time."""

    fleet: ShownFleet
    lake: Lake
    clock: Callable[[], datetime]

    def fresh(self) -> Freshness:
        recent = self.lake.recent_minutes()
        return freshness(recent, newest_measured(recent), self.clock())


#: Every fleet's by its name; the first one's by None as well.
Contexts = Mapping[str | None, Context]


@dataclass(frozen=True, slots=True)
class Notice:
    """Said in place of a page that has nothing to draw."""

    title: str
    sentences: tuple[Component, ...]
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbers behind a page: columns, and values by them."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page's name, the view that it shows, its empty layout, what fills it and the numbers behind it."""

    name: str
    view: type
    slots: tuple[str, ...]
    body: Callable[[], Component]
    fill: Callable[[Any, Context, Theme], Slots | Notice]
    rows: Callable[[Any, Context], Rows] | None = None

    def layout(self) -> Component:
        """The page before its first answer."""
        return html.Div(
            [
                html.Div(html.P("Reading the lake …", className="fg-note"), id=f"{self.name}-notice"),
                html.Div(self.body(), id=f"{self.name}-body", style={"visibility": "hidden"}),
                dcc.Store(id=f"{self.name}-drawn"),
            ]
        )


def register(
    app: Dash,
    page: Page,
    contexts: Contexts,
    answered: Callable[[str, float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """One callback a page: by address, tick or colour scheme, all slots at once.

    ``answered`` is told the page's name and how many seconds an answer took.
    """
    shared = Shared[Slots | Notice]()
    outputs = {slot: Output(*_component_and_property(slot)) for slot in page.slots}
    frame = {
        "notice": Output(f"{page.name}-notice", "children"),
        "style": Output(f"{page.name}-body", "style"),
        "drawn": Output(f"{page.name}-drawn", "data"),
    }
    inputs = {
        "pathname": Input("url", "pathname"),
        "search": Input("url", "search"),
        "tick": Input("tick", "n_intervals"),
        "scheme": Input("scheme", "data"),
    }

    def answer(
        pathname: str,
        search: str,
        tick: int | None,  # noqa: ARG001 (it asks again)
        scheme: str | None,
        drawn: str | None,
    ) -> dict[str, Any]:
        view = parse(pathname, search or "")
        nothing: dict[str, Any] = dict.fromkeys([*outputs, *frame], no_update)
        if view is None or not isinstance(view, page.view) or scheme is None:
            return nothing
        began = monotonic()
        slots = _answer(page, view, contexts, shared, scheme, drawn)
        answered(page.name, monotonic() - began)
        return nothing | dict(slots)

    app.callback(output=outputs | frame, inputs=inputs, state={"drawn": State(f"{page.name}-drawn", "data")})(
        answer
    )


def _component_and_property(slot: str) -> tuple[str, str]:
    component, _, name = slot.partition(".")
    return component, name


def _answer(
    page: Page,
    view: View,
    contexts: Contexts,
    shared: Shared[Slots | Notice],
    scheme: str,
    drawn: str | None,
) -> Slots:
    """New slots where something moved, a notice where there is nothing to draw."""
    context = contexts.get(view.fleet)
    if context is None:
        return {"notice": _shown(no_such_fleet(view)), "style": {"display": "none"}, "drawn": None}
    try:
        versions = context.lake.versions()
        key = f"{href(view)} {scheme} {versions} {context.clock():%Y-%m-%dT%H:%M}"
        if key == drawn:
            return {}
        filled = (
            nothing_yet(context.lake.root)
            if all(version is None for version in versions)
            else shared.answer(key, lambda: page.fill(view, context, theme(scheme)))
        )
    except LakeError as error:
        # What was drawn stays, under the error: it was true when it was read.
        filled, key = unreadable(error), ""
        if drawn is not None:
            return {"notice": _shown(filled), "drawn": key}
    if isinstance(filled, Notice):
        return {"notice": _shown(filled), "style": {"display": "none"}, "drawn": key}
    return {**filled, "notice": None, "style": {}, "drawn": key}


def _shown(what: Notice) -> Component:
    return notice(what.title, what.sentences, what.bad)


def no_such_fleet(view: View) -> Notice:
    return Notice(f"No fleet named {view.fleet}", (anchor("Go to the first fleet", href(FleetView())),))


def nothing_yet(root: str) -> Notice:
    return Notice(
        "No data yet",
        (
            html.Span(
                ["The lake ", html.Code(root), " holds no tables. This page fills itself as soon as it does."]
            ),
            html.Span(
                [
                    "Start an agent with ",
                    html.Code("fleetgauge probe --config fleet.yaml"),
                    " and the pipeline with ",
                    html.Code("fleetgauge stream --config fleet.yaml"),
                    ". The first minute shows about two minutes later.",
                ]
            ),
        ),
    )


def unreadable(error: LakeError) -> Notice:
    return Notice(
        "The lake cannot be read",
        (
            html.Code(str(error)),
            "This is not a statement about the fleet's health. Check the table's files and the rights of "
            "this process; the page tries again every 10 seconds.",
        ),
        bad=True,
    )
