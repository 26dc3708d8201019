"""What a page is, and the one way in which every page is kept fresh."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from dash import Dash, Input, Output, State, dcc, html, no_update

from fleetgauge_dashboards.figures.theme import Theme, theme
from fleetgauge_dashboards.links import FleetView, View, href, parse
from fleetgauge_dashboards.pages.parts import Component, anchor, notice, numbers_of, tools_slot
from fleetgauge_dashboards.pages.shared_answers import Shared
from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.served_fleets import ShownFleet
from fleetgauge_dashboards.single_flight import Patience, SlowError
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.alerts import Alert, alerts
from fleetgauge_dashboards.views.freshness import Freshness, freshness

logger = logging.getLogger(__name__)

#: What a page's slots are filled with: "component.property" -> value.
Slots = Mapping[str, Any]


class _Drawn(TypedDict):
    """What a page's browser was given: of which address, by what; no key if that failed."""

    address: str
    key: str


@dataclass(frozen=True, slots=True)
class Context:
    """What pages read: the fleet's lake, and the time."""

    fleet: ShownFleet
    lake: Lake
    clock: Callable[[], datetime]

    def times(self, view: View) -> Times:
        """The reader's, or else the fleet's."""
        return Times(view.lens.zone or self.fleet.week_zone)

    def fresh(self) -> Freshness:
        now = self.clock()
        return freshness(
            self.lake.recency(), now, awaited=self.fleet.is_awaited(now), over=self.fleet.over(now)
        )

    def alerts(self) -> tuple[Alert, ...] | None:
        """Newest first; None where they cannot be read, which the frame says on every page."""
        try:
            return alerts(self.lake.health_events())
        except LakeError:
            return None


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
class Part:
    """A part of a page whose numbers can be seen as a table and taken away as a file.

    Where the page's body has a place for it (`parts.tools`), ``has_tools``, links to both are put there.
    """

    name: str
    title: str
    rows: Callable[[Any, Context], Rows]
    has_tools: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page's name, the view that it shows, its empty layout, what fills it and the numbers behind it."""

    name: str
    view: type
    slots: tuple[str, ...]
    body: Callable[[], Component]
    fill: Callable[[Any, Context, Theme], Slots | Notice]
    parts: tuple[Part, ...] = ()

    def tools(self, view: View) -> Slots:
        """Links to the numbers of its parts."""
        return {
            tools_slot(self.name, part.name): numbers_of(view, part.name)
            for part in self.parts
            if part.has_tools
        }

    def part(self, name: str) -> Part | None:
        return next((part for part in self.parts if part.name == name), None)

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
    patience: Patience,
    answered: Callable[[str, float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """One callback a page: by address, tick or colour scheme, all slots at once.

    ``answered`` is told the page's name and how many seconds an answer took.
    """
    shared = Shared[Slots | Notice]()
    slots = [*page.slots, *(tools_slot(page.name, part.name) for part in page.parts if part.has_tools)]
    outputs = {slot: output(slot) for slot in slots}
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
        drawn: _Drawn | None,
    ) -> dict[str, Any]:
        view = parse(pathname, search or "")
        nothing: dict[str, Any] = dict.fromkeys([*outputs, *frame], no_update)
        if view is None or not isinstance(view, page.view) or scheme is None:
            return nothing
        began = monotonic()
        slots = _answer(page, view, contexts.get(view.lens.fleet), patience, shared, scheme, drawn)
        answered(page.name, monotonic() - began)
        return nothing | dict(slots)

    app.callback(output=outputs | frame, inputs=inputs, state={"drawn": State(f"{page.name}-drawn", "data")})(
        answer
    )


def output(slot: str) -> Output:
    """Of "component.property"."""
    component, _, name = slot.partition(".")
    return Output(component, name)


def _answer(
    page: Page,
    view: View,
    context: Context | None,
    patience: Patience,
    shared: Shared[Slots | Notice],
    scheme: str,
    drawn: _Drawn | None,
) -> Slots:
    """New slots where something moved, a notice where there is nothing to draw."""
    address = href(view)
    if context is None:
        return {"notice": _shown(no_such_fleet(view)), "style": {"display": "none"}, "drawn": None}
    lake = context.lake
    try:
        versions = patience.ask(("versions", lake.root), lake.versions)
        key = f"{address} {scheme} {versions} {context.clock():%Y-%m-%dT%H:%M}"
        if drawn is not None and drawn["key"] == key:
            return {}
        filled = (
            nothing_yet(lake.root)
            if all(version is None for version in versions)
            else patience.ask(
                (page.name, key), lambda: shared.answer(key, lambda: page.fill(view, context, theme(scheme)))
            )
        )
    except (LakeError, SlowError) as error:
        filled, key = slow(error) if isinstance(error, SlowError) else unreadable(error), ""
    except Exception:
        logger.exception("page %s, asked for %s", page.name, address)
        filled, key = not_made(), ""
    now_drawn: _Drawn = {"address": address, "key": key}
    if not isinstance(filled, Notice):
        return {**filled, **page.tools(view), "notice": None, "style": {}, "drawn": now_drawn}
    if not key and drawn is not None and drawn["address"] == address:
        # What was drawn of this very view stays, under the error: it was true when it was read.
        return {"notice": _shown(filled), "drawn": now_drawn}
    return {"notice": _shown(filled), "style": {"display": "none"}, "drawn": now_drawn}


def _shown(what: Notice) -> Component:
    return notice(what.title, what.sentences, what.bad)


def no_such_fleet(view: View) -> Notice:
    return Notice(f"No fleet named {view.lens.fleet}", (anchor("Go to the first fleet", href(FleetView())),))


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


def not_made() -> Notice:
    return Notice(
        "This page could not be made",
        (
            "An error of the page itself, not a statement about the fleet's health; the server's log has it. "
            "The page tries again every 10 seconds.",
        ),
        bad=True,
    )


def slow(error: SlowError) -> Notice:
    return Notice(
        "The lake answers slowly",
        (
            f"It has been read for {error.for_s:.0f} s, and is read on: the page fills itself once the "
            "answer is there. What it shows was true when it was read. Check the lake's disk or store.",
        ),
    )
