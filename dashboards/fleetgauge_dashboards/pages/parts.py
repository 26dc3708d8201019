"""The pieces that pages are made of. Every control is a link: the URL is the state."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from fleetgauge_dashboards.definitions import DEFINITIONS
from fleetgauge_dashboards.links import (
    BrokerView,
    ClusterView,
    Drawn,
    Span,
    TableView,
    View,
    Window,
    csv_href,
    href,
)
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.cluster import Number, Verdict

#: Half a year; an older one opens by its address.
WEEKS_LISTED = 26

_SIGNS = {Verdict.MET: "✓ met", Verdict.MISSED: "✕ missed", Verdict.UNKNOWN: "not known"}

#: What dash calls a component has no common type of its own.
Component = Any


def aria(**said: str | None) -> dict[str, Any]:
    """What a screen reader is told; what is None stays out."""
    return {f"aria-{name}": text for name, text in said.items() if text is not None}


def help_sign(name: str, about: str) -> Component:
    """Why this number: the definition, by mouse, touch or keyboard."""
    return dmc.Tooltip(
        label=DEFINITIONS[name],
        multiline=True,
        w=380,
        withArrow=True,
        events={"hover": True, "focus": True, "touch": True},
        children=dmc.ActionIcon(
            "?",
            variant="default",
            size=18,
            radius="xl",
            fz=11,
            **aria(label=f"Why this number: {about}. {DEFINITIONS[name]}"),
        ),
    )


def panel(
    title: str,
    definition: str,
    body: Component,
    end: Component = None,
    class_name: str = "",
    tools: Sequence[Component] = (),
) -> Component:
    """A titled box with its definition, the frame of every chart."""
    head = [html.H2(title), help_sign(definition, title)]
    if end is not None:
        head.append(html.Div(end, className="fg-end"))
    if tools:
        head.append(html.Div(tools, className="fg-tools"))
    return html.Section(
        [html.Div(head, className="fg-panel__head"), body], className=f"fg-panel {class_name}".strip()
    )


def chart(identifier: str, height: int, label: str) -> Component:
    """A place for a figure; a drag along the time axis zooms."""
    graph = dcc.Graph(
        id=identifier,
        figure={"layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}, "height": height}},
        config={"displaylogo": False, "displayModeBar": False, "doubleClick": False, "responsive": True},
        style={"minHeight": height},
    )
    return html.Div(graph, role="img", **aria(label=label))


def tools_slot(page: str, part: str) -> str:
    """Where links to a part's numbers go."""
    return f"{page}-{part}-tools.children"


def tools(page: str, part: str, picture_of: str | None = None) -> list[Component]:
    """A place for the links to a part's numbers, and a button that takes its chart away as a picture."""
    places: list[Component] = [html.Span(id=tools_slot(page, part).partition(".")[0])]
    if picture_of is not None:
        # fleetgauge.js does it: the picture is made in the browser.
        png = {"data-picture": picture_of, **aria(label="This chart as a PNG")}
        places.append(html.Button("PNG", className="fg-tool", **png))
    return places


def numbers_of(view: Any, part: str) -> list[Component]:
    """The links themselves."""
    table_of = anchor("Table", href(TableView(view, part)), "fg-tool", label=f"{part} as a table")
    return [table_of, html.A("CSV", href=csv_href(view, part), className="fg-tool", download="")]


def anchor(
    text: Component,
    address: str,
    class_name: str | None = None,
    current: str | None = None,
    label: str | None = None,
) -> Component:
    """A link inside the application: the page changes without being loaded anew (fleetgauge.js).

    Components that do that by themselves decode the address first, and with it what a query holds, or know
    no labels.
    """
    said = {"data-inside": "true", **aria(current=current, label=label)}
    return html.A(text, href=address, className=class_name, **said)


def link(text: str, view: View, class_name: str = "fg-link") -> Component:
    return anchor(text, href(view), class_name)


def switch(label: str, choices: Sequence[tuple[str, View, bool]]) -> Component:
    """Links side by side, one of them current."""
    return html.Nav(
        [anchor(text, href(view), current="true" if current else None) for text, view, current in choices],
        className="fg-switch",
        **aria(label=label),
    )


def file_link(text: str, view: Drawn, part: str) -> Component:
    """The numbers behind a part of a page, to take away."""
    return html.A(text, href=csv_href(view, part), className="fg-link", download="")


def number_card(number: Number) -> Component:
    """A number beside its objective."""
    sign = number.verdict and html.Span(_SIGNS[number.verdict], className=f"fg-{number.verdict.value} fg-sub")
    return panel(
        number.title,
        number.definition,
        html.Div(
            [
                html.Div(number.value, className="fg-big"),
                *(html.Div(note, className="fg-note") for note in number.notes),
            ]
        ),
        end=sign,
    )


def table(label: str, head: Sequence[str], rows: Sequence[Sequence[Component]]) -> Component:
    """A short table; a wide one scrolls by itself, by keyboard too."""
    return html.Div(
        html.Table(
            [
                html.Thead(html.Tr([html.Th(title, scope="col") for title in head])),
                html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
            ],
            className="fg-table",
        ),
        className="fg-scroll",
        role="region",
        tabIndex=0,
        **aria(label=label),
    )


def window_switch(view: ClusterView | BrokerView, span: Span, times: Times, *facts: str) -> list[Component]:
    """The newest minutes to choose from, the span that is shown, and what is known of it."""
    live = isinstance(view.shown, Window)
    # What moves with the clock is of no week.
    moving = replace(view, week=None) if isinstance(view, ClusterView) else view
    choices = [(f"last {w.value}", replace(moving, shown=w), w is view.shown) for w in Window]
    shown = f"{times.minute(span.start)} to {times.minute(span.end)} {times.zone}{'' if live else ', fixed'}"
    return [
        switch("Minutes shown", choices),
        html.Span(" · ".join([shown, *(fact for fact in facts if fact)]), className="fg-sub"),
        link("Link to exactly these minutes", replace(view, shown=span)) if live else "",
    ]


def week_menu(weeks: Sequence[tuple[date, View]], shown: date) -> Component:
    """The newest weeks, each a link, folded away."""
    listed = [
        anchor(f"{week:%a %d %b %Y}", href(view), "fg-link", current="true" if week == shown else None)
        for week, view in weeks[:WEEKS_LISTED]
    ]
    menu = [html.Summary("Other week"), html.Nav(listed, className="fg-weeks", **aria(label="Weeks"))]
    # A browser leaves unfolded what stays the same: another week's menu is another one, and folded.
    return html.Details(menu, key=f"{shown}", className="fg-menu")


def notice(title: str, sentences: Sequence[Component], bad: bool = False) -> Component:
    """A page that has nothing to draw says why, and what to do."""
    return html.Section(
        [html.H2(title), *(html.P(sentence) for sentence in sentences)],
        className=f"fg-empty{' fg-empty--bad' if bad else ''}",
        role="alert" if bad else "status",
    )
