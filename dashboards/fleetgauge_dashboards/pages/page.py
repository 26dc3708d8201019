"""Define a page, and register the Dash callback that renders and refreshes it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypedDict

from dash import Dash, Input, Output, State, dcc, html, no_update
from flask import request

from fleetgauge_dashboards.figures.theme import Theme, select_theme
from fleetgauge_dashboards.links import FleetView, View, href, parse_view
from fleetgauge_dashboards.pages.components import Component, anchor, notice, part_links, tools_slot
from fleetgauge_dashboards.pages.shared_results import SharedResults
from fleetgauge_dashboards.reader import LakeError, LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.single_flight import ResultPendingError, SingleFlight
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.alerts import HealthAlert, fold_alerts
from fleetgauge_dashboards.views.freshness import Freshness, assess_freshness

logger = logging.getLogger(__name__)

#: The browser asks this often for content whose read continues.
RETRY_MS = 1_000
#: Values of a page's component properties, by "component.property".
Slots = Mapping[str, Any]


class _RenderState(TypedDict):
    """What the browser last rendered: the view's URL, and a key of the data version; empty after an error."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class PageContext:
    """What a page renders from: a fleet, its lake and the clock."""

    fleet: ServedFleet
    lake: LakeReader
    clock: Callable[[], datetime]

    def time_format(self, view: View) -> TimeFormat:
        """Return the time format of the view's time zone, by default the fleet's."""
        return TimeFormat(view.display.zone or self.fleet.week_zone)

    def assess_freshness(self) -> Freshness:
        """Return the age and coverage of the lake's newest data.

        Raises: LakeError when the lake cannot be read.
        """
        now = self.clock()
        return assess_freshness(
            self.lake.recency(),
            now,
            awaited=self.fleet.is_expecting_data(now),
            ended=self.fleet.ended_clusters(now),
        )

    def read_alerts(self) -> tuple[HealthAlert, ...] | None:
        """Return all alerts, newest first, or None if they cannot be read; a banner reports that error."""
        try:
            return fold_alerts(self.lake.health_events())
        except LakeError:
            return None


#: The context of each fleet by its name, and of the first fleet also by None.
FleetContexts = Mapping[str | None, PageContext]


@dataclass(frozen=True, slots=True)
class PageNotice:
    """A message shown instead of a page that has no content."""

    title: str
    sentences: tuple[Component, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows behind a part of a page: the column names, and mappings from them to values."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a page, such as a chart, whose rows can be viewed as a table and downloaded as CSV.

    With ``has_tools`` the page's body has a place for links to both (`components.tools`).
    """

    name: str
    title: str
    read_rows: Callable[[Any, PageContext], TableRows]
    has_tools: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its name, the type of its view, its layout, the function that fills it, and its parts."""

    name: str
    view: type
    slots: tuple[str, ...]
    build_body: Callable[[], Component]
    fill: Callable[[Any, PageContext, Theme], Slots | PageNotice]
    parts: tuple[PagePart, ...] = ()

    def tools(self, view: View) -> Slots:
        """Return the links to the tables and files of the page's parts, by component property."""
        return {
            tools_slot(self.name, part.name): part_links(view, part.name)
            for part in self.parts
            if part.has_tools
        }

    def get_part(self, name: str) -> PagePart | None:
        """Return the part of that name, or None."""
        return next((part for part in self.parts if part.name == name), None)

    def layout(self) -> Component:
        """Return the page's layout before its first data arrives."""
        return html.Div(
            [
                html.Div(html.P("Reading the lake …", className="fg-note"), id=f"{self.name}-notice"),
                html.Div(self.build_body(), id=f"{self.name}-body", style={"visibility": "hidden"}),
                dcc.Store(id=f"{self.name}-drawn"),
                dcc.Interval(id=f"{self.name}-retry", interval=RETRY_MS, disabled=True),
            ]
        )


def register(
    app: Dash,
    page: Page,
    contexts: FleetContexts,
    single_flight: SingleFlight,
    observe_response: Callable[[str, float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Register the page's callback, which fills all its slots on a new URL, tick or colour scheme.

    ``observe_response`` is called with the page's name and the duration of each response in seconds.
    """
    shared = SharedResults[Slots | PageNotice]()
    slots = [*page.slots, *(tools_slot(page.name, part.name) for part in page.parts if part.has_tools)]
    outputs = {slot: slot_output(slot) for slot in slots}
    frame = {
        "notice": Output(f"{page.name}-notice", "children"),
        "style": Output(f"{page.name}-body", "style"),
        "drawn": Output(f"{page.name}-drawn", "data"),
        "retry_off": Output(f"{page.name}-retry", "disabled"),
    }
    inputs = {
        "pathname": Input("url", "pathname"),
        "search": Input("url", "search"),
        "tick": Input("tick", "n_intervals"),
        "retry": Input(f"{page.name}-retry", "n_intervals"),
        "scheme": Input("scheme", "data"),
    }

    def respond(
        pathname: str,
        search: str,
        scheme: str | None,
        last_render: _RenderState | None,
        **_triggers: int | None,
    ) -> dict[str, Any]:
        view = parse_requested_view(pathname, search)
        no_updates: dict[str, Any] = dict.fromkeys([*outputs, *frame], no_update)
        if view is None or not isinstance(view, page.view) or scheme is None:
            return no_updates
        started_s = monotonic()
        slots = _render(
            page, view, contexts.get(view.display.fleet), single_flight, shared, scheme, last_render
        )
        observe_response(page.name, monotonic() - started_s)
        return no_updates | dict(slots)

    app.callback(
        output=outputs | frame, inputs=inputs, state={"last_render": State(f"{page.name}-drawn", "data")}
    )(respond)


def parse_requested_view(pathname: str, search: str | None) -> View | None:
    """Return the view of a browser's location in a callback, whose request has the prefix of the pages."""
    return parse_view(pathname, search or "", request.script_root)


def slot_output(slot: str) -> Output:
    """Return the callback output of a slot, "component.property"."""
    component, _, name = slot.partition(".")
    return Output(component, name)


def _render(
    page: Page,
    view: View,
    context: PageContext | None,
    single_flight: SingleFlight,
    shared: SharedResults[Slots | PageNotice],
    scheme: str,
    last_render: _RenderState | None,
) -> Slots:
    """Return the slots that changed: the page's content, a notice without content, or nothing."""
    url = href(view)
    if context is None:
        return {
            "notice": _show_notice(unknown_fleet_notice(view)),
            "style": {"display": "none"},
            "drawn": None,
            "retry_off": True,
        }
    lake = context.lake
    is_pending = False
    try:
        versions = single_flight.run(("versions", lake.root), lake.versions)
        key = f"{url} {scheme} {versions} {context.clock():%Y-%m-%dT%H:%M}"
        if last_render is not None and last_render["key"] == key:
            return {}

        def fill() -> tuple[str, Slots | PageNotice]:
            return key, shared.get_or_compute(key, lambda: page.fill(view, context, select_theme(scheme)))

        # A slow read is shared under the view alone, whatever has changed since it began: its result is shown
        # with the key of its start, and the next tick finds what is newer.
        key, filled = (
            (key, no_data_notice(lake.root))
            if all(version is None for version in versions)
            else single_flight.run((page.name, url, scheme), fill)
        )
    except ResultPendingError as error:
        filled, key, is_pending = slow_lake_notice(error), "", True
    except LakeError as error:
        filled, key = unreadable_lake_notice(error), ""
    except Exception:
        logger.exception("page %s: rendering %s failed", page.name, url)
        filled, key = failed_page_notice(), ""
    frame = {"drawn": _RenderState(url=url, key=key), "retry_off": not is_pending}
    if not isinstance(filled, PageNotice):
        return {**filled, **page.tools(view), **frame, "notice": None, "style": {}}
    if not key and last_render is not None and last_render["url"] == url:
        # Content of the same view stays below the error: it was correct when it was read.
        return {**frame, "notice": _show_notice(filled)}
    return {**frame, "notice": _show_notice(filled), "style": {"display": "none"}}


def _show_notice(page_notice: PageNotice) -> Component:
    return notice(page_notice.title, page_notice.sentences, page_notice.is_error)


def unknown_fleet_notice(view: View) -> PageNotice:
    """Return the notice for a URL that names a fleet which is not served."""
    return PageNotice(
        f"No fleet named {view.display.fleet}",
        (anchor("Go to the first fleet", href(FleetView(display=replace(view.display, fleet=None)))),),
    )


def no_data_notice(root: str) -> PageNotice:
    """Return the notice for a lake without tables."""
    return PageNotice(
        "No data yet",
        (
            html.Span(
                ["The lake ", html.Code(root), " has no tables yet. This page updates as soon as it has."]
            ),
            html.Span(
                [
                    "Start an agent with ",
                    html.Code("fleetgauge probe --config fleet.yaml"),
                    " and the pipeline with ",
                    html.Code("fleetgauge stream --config fleet.yaml"),
                    ". The first minute appears about two minutes later.",
                ]
            ),
        ),
    )


def unreadable_lake_notice(error: LakeError) -> PageNotice:
    """Return the notice for a lake that cannot be read."""
    return PageNotice(
        "The lake cannot be read",
        (
            html.Code(str(error)),
            "This says nothing about the fleet's health. Check the table's files and the permissions of this "
            "process; the page retries every 10 seconds.",
        ),
        is_error=True,
    )


def failed_page_notice() -> PageNotice:
    """Return the notice for an unexpected error."""
    return PageNotice(
        "This page could not be rendered",
        (
            "An internal error, which says nothing about the fleet's health; see the server's log. "
            "The page retries every 10 seconds.",
        ),
        is_error=True,
    )


def slow_lake_notice(error: ResultPendingError) -> PageNotice:
    """Return the notice for a lake that is still being read."""
    return PageNotice(
        "The lake answers slowly",
        (
            f"The read has taken {error.pending_s:.0f} s and continues; the page updates when it is done. "
            "Content below was correct when it was read. Check the lake's disk or object store.",
        ),
    )
