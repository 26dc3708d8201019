"""The numbers behind a part of a page as a table: sorted, filtered and read without eyes for charts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import dash_ag_grid as dag
from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import TableView, href
from fleetgauge_dashboards.pages.files import part_of
from fleetgauge_dashboards.pages.grid import options
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, anchor, file_link
from fleetgauge_dashboards.serialization import plain
from fleetgauge_dashboards.units import count

#: More rows than a browser takes at once are in the file alone.
ROWS = 20_000
ROWS_DRAWN = 100


#: As a moment is written.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT")


def body() -> list[Component]:
    grid = dag.AgGrid(
        id="numbers-grid",
        columnDefs=[],
        rowData=[],
        defaultColDef={
            "sortable": True,
            "filter": True,
            "resizable": True,
            "wrapHeaderText": True,
            "autoHeaderHeight": True,
            "minWidth": 120,
            "flex": 1,
        },
        dashGridOptions=options(ROWS_DRAWN),
        style={"height": None},
    )
    return [html.Div(id="numbers-title", className="fg-titlerow"), grid]


def table_of(pages: Sequence[Page]) -> Page:
    """The page that shows the parts of all others."""

    def fill(view: TableView, context: Context, _look: Theme) -> Slots | Notice:
        found = part_of(pages, view)
        if found is None:
            return Notice("There are no such numbers", (anchor("Show the page", href(view.of)),))
        _, part = found
        numbers = part.rows(view.of, context)
        shown = [_plain(row, numbers.columns) for row in numbers.rows[:ROWS]]
        return {
            "numbers-title.children": _title(part.title, view, len(numbers.rows)),
            "numbers-grid.columnDefs": [_column(name, shown) for name in numbers.columns],
            "numbers-grid.rowData": shown,
        }

    slots = ("numbers-title.children", "numbers-grid.columnDefs", "numbers-grid.rowData")
    return Page("numbers", TableView, slots, body, fill)


def _title(title: str, view: TableView, rows: int) -> list[Component]:
    cut = f", the first {ROWS:,}: the file has all" if rows > ROWS else ""
    return [
        html.H1(title),
        html.Span(f"{count(rows, 'row')}{cut}; moments in UTC", className="fg-sub"),
        anchor("Show the page", href(view.of), "fg-link"),
        file_link("As CSV", view.of, view.part),
    ]


def _plain(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Numbers, words and truth as they are; what has parts as text."""
    return {name: _cell(row.get(name)) for name in columns}


def _cell(value: Any) -> Any:
    written = plain(value)
    if isinstance(written, list):
        return ", ".join(map(str, written))
    if isinstance(written, dict):
        return ", ".join(f"{name} {one}" for name, one in written.items())
    return written


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = next((row[name] for row in rows if row[name] is not None), None)
    column: dict[str, Any] = {"field": name, "headerName": name}
    if isinstance(known, str) and _MOMENT.match(known):
        return column | {"minWidth": 195}
    if isinstance(known, int | float) and not isinstance(known, bool):
        return column | {"type": "rightAligned", "filter": "agNumberColumnFilter"}
    return column
