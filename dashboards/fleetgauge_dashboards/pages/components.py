"""Components shared by the pages. Navigation controls are links, since a page's state is its URL."""

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
    PageView,
    Span,
    TableView,
    View,
    Window,
    csv_href,
    href,
)
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.cluster import KeyFigure, ObjectiveVerdict

#: Weeks in a page's week menu: half a year. Older weeks open by URL.
WEEKS_LISTED = 26

_VERDICTS = {
    ObjectiveVerdict.MET: "✓ met",
    ObjectiveVerdict.MISSED: "✕ missed",
    ObjectiveVerdict.UNKNOWN: "unknown",
}

#: Dash components, strings and lists of them have no common type.
Component = Any


def aria(**attributes: str | None) -> dict[str, Any]:
    """Return ARIA attributes by HTML name, without those that are None."""
    return {f"aria-{name}": text for name, text in attributes.items() if text is not None}


def help_button(name: str, about: str) -> Component:
    """Return a button whose tooltip is a definition, opened by mouse, touch or keyboard focus."""
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
            **aria(label=f"Definition: {about}. {DEFINITIONS[name]}"),
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
    """Return a titled section with a definition, optional controls and links, and a body."""
    header = [html.H2(title), help_button(definition, title)]
    if end is not None:
        header.append(html.Div(end, className="fg-end"))
    if tools:
        header.append(html.Div(tools, className="fg-tools"))
    return html.Section(
        [html.Div(header, className="fg-panel__head"), body], className=f"fg-panel {class_name}".strip()
    )


def chart(identifier: str, height: int, label: str) -> Component:
    """Return an empty chart; dragging along its time axis zooms."""
    graph = dcc.Graph(
        id=identifier,
        figure={"layout": {"xaxis": {"visible": False}, "yaxis": {"visible": False}, "height": height}},
        config={"displaylogo": False, "displayModeBar": False, "doubleClick": False, "responsive": True},
        style={"minHeight": height},
    )
    return html.Div(graph, role="img", **aria(label=label))


def tools_slot(page: str, part: str) -> str:
    """Return the component property for the links to a part's table and file."""
    return f"{page}-{part}-tools.children"


def tools(page: str, part: str, picture_of: str | None = None) -> list[Component]:
    """Return a place for the links to a part's table and file, and a button that saves its chart as PNG."""
    controls: list[Component] = [html.Span(id=tools_slot(page, part).partition(".")[0])]
    if picture_of is not None:
        # fleetgauge.js handles the click: the browser renders the picture.
        png = {"data-picture": picture_of, **aria(label="This chart as a PNG")}
        controls.append(html.Button("PNG", className="fg-tool", **png))
    return controls


def part_links(view: Any, part: str) -> list[Component]:
    """Return the links to a part's table and CSV file."""
    table_link = anchor("Table", href(TableView(view, part)), "fg-tool", label=f"{part} as a table")
    return [table_link, html.A("CSV", href=csv_href(view, part), className="fg-tool", download="")]


def anchor(
    text: Component,
    url: str,
    class_name: str | None = None,
    current: str | None = None,
    label: str | None = None,
) -> Component:
    """Return a link within the application; fleetgauge.js follows it without a page load.

    Dash's own link components decode the URL first, including encoded query values, or accept no label.
    """
    attributes = {"data-inside": "true", **aria(current=current, label=label)}
    return html.A(text, href=url, className=class_name, **attributes)


def link(text: str, view: View, class_name: str = "fg-link") -> Component:
    """Return a link to a view."""
    return anchor(text, href(view), class_name)


def link_switch(label: str, choices: Sequence[tuple[str, View, bool]]) -> Component:
    """Return links side by side, of which one is current; a choice is (text, view, whether it is current)."""
    return html.Nav(
        [anchor(text, href(view), current="true" if current else None) for text, view, current in choices],
        className="fg-switch",
        **aria(label=label),
    )


def file_link(text: str, view: PageView, part: str) -> Component:
    """Return a download link to the CSV file of a part."""
    return html.A(text, href=csv_href(view, part), className="fg-link", download="")


def key_figure_card(figure: KeyFigure) -> Component:
    """Return a card with a key figure, its notes and whether it meets its objective."""
    verdict = figure.verdict and html.Span(
        _VERDICTS[figure.verdict], className=f"fg-{figure.verdict.value} fg-sub"
    )
    return panel(
        figure.title,
        figure.definition,
        html.Div(
            [
                html.Div(figure.value, className="fg-big"),
                *(html.Div(note, className="fg-note") for note in figure.notes),
            ]
        ),
        end=verdict,
    )


def table(label: str, headings: Sequence[str], rows: Sequence[Sequence[Component]]) -> Component:
    """Return a short table; a wide one scrolls horizontally, also by keyboard."""
    return html.Div(
        html.Table(
            [
                html.Thead(html.Tr([html.Th(title, scope="col") for title in headings])),
                html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
            ],
            className="fg-table",
        ),
        className="fg-scroll",
        role="region",
        tabIndex=0,
        **aria(label=label),
    )


def time_range_row(
    view: ClusterView | BrokerView, span: Span, times: TimeFormat, *facts: str
) -> list[Component]:
    """Return links to other time ranges, the displayed range with facts about it, and a permanent link."""
    is_live = isinstance(view.shown, Window)
    # A time range that moves with the clock belongs to no week.
    moving = replace(view, week=None) if isinstance(view, ClusterView) else view
    choices = [
        (f"last {window.value}", replace(moving, shown=window), window is view.shown) for window in Window
    ]
    range_text = f"{times.format_minute(span.start)} to {times.format_minute(span.end)} {times.zone}"
    if not is_live:
        range_text += ", fixed"
    return [
        link_switch("Time range", choices),
        html.Span(" · ".join([range_text, *(fact for fact in facts if fact)]), className="fg-sub"),
        link("Permanent link to this time range", replace(view, shown=span)) if is_live else "",
    ]


def week_menu(weeks: Sequence[tuple[date, View]], shown: date) -> Component:
    """Return a folded menu of links to the newest weeks."""
    week_links = [
        anchor(f"{week:%a %d %b %Y}", href(view), "fg-link", current="true" if week == shown else None)
        for week, view in weeks[:WEEKS_LISTED]
    ]
    menu = [html.Summary("Other week"), html.Nav(week_links, className="fg-weeks", **aria(label="Weeks"))]
    # The key changes with the week, so that the browser folds the menu after a choice.
    return html.Details(menu, key=f"{shown}", className="fg-menu")


def notice(title: str, sentences: Sequence[Component], is_error: bool = False) -> Component:
    """Return a message in place of content: why there is none, and what to do."""
    return html.Section(
        [html.H2(title), *(html.P(sentence) for sentence in sentences)],
        className=f"fg-empty{' fg-empty--bad' if is_error else ''}",
        role="alert" if is_error else "status",
    )
