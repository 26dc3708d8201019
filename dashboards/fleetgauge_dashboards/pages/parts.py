"""The pieces that pages are made of. Every control is a link: the URL is the state."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from fleetgauge_dashboards.definitions import DEFINITIONS
from fleetgauge_dashboards.links import View, href

#: Half a year; an older one opens by its address.
WEEKS_LISTED = 26

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
    title: str, definition: str, body: Component, end: Component = None, class_name: str = ""
) -> Component:
    """A titled box with its definition, the frame of every chart."""
    head = [html.H2(title), help_sign(definition, title)]
    if end is not None:
        head.append(html.Div(end, className="fg-end"))
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


def anchor(
    text: Component, address: str, class_name: str | None = None, current: str | None = None
) -> Component:
    """A link inside the application: the page changes without being loaded anew."""
    return dmc.Anchor(text, href=address, className=class_name, inherit=True, **aria(current=current))


def link(text: str, view: View, class_name: str = "fg-link") -> Component:
    return anchor(text, href(view), class_name)


def switch(label: str, choices: Sequence[tuple[str, View, bool]]) -> Component:
    """Links side by side, one of them current."""
    return html.Nav(
        [anchor(text, href(view), current="true" if current else None) for text, view, current in choices],
        className="fg-switch",
        **aria(label=label),
    )


def week_menu(weeks: Sequence[tuple[date, View]]) -> Component:
    """The newest weeks, each a link."""
    items = [dmc.MenuItem(f"{week:%a %d %b %Y}", href=href(view)) for week, view in weeks[:WEEKS_LISTED]]
    opener = dmc.MenuTarget(dmc.Button("Other week ▾", variant="default", size="compact-sm"))
    return dmc.Menu([opener, dmc.MenuDropdown(items)])


def notice(title: str, sentences: Sequence[Component], bad: bool = False) -> Component:
    """A page that has nothing to draw says why, and what to do."""
    return html.Section(
        [html.H2(title), *(html.P(sentence) for sentence in sentences)],
        className=f"fg-empty{' fg-empty--bad' if bad else ''}",
        role="alert" if bad else "status",
    )
