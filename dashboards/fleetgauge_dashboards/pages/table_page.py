"""The page that shows the rows behind a part of another page as a sortable, filterable table."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import dash_ag_grid as dag
from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import TableView, href
from fleetgauge_dashboards.pages.components import Component, anchor, file_link
from fleetgauge_dashboards.pages.files import find_part
from fleetgauge_dashboards.pages.grid_options import build_grid_options
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, Slots
from fleetgauge_dashboards.serialization import to_json_value
from fleetgauge_dashboards.units import format_count

#: Rows sent to the browser; the CSV file has all of them.
MAX_ROWS = 20_000
ROWS_PER_PAGE = 100


#: The start of an instant in RFC 3339.
_INSTANT_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT")


def build_body() -> list[Component]:
    """Return the page's layout: a title and an empty table."""
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
        dashGridOptions=build_grid_options(ROWS_PER_PAGE),
        style={"height": None},
    )
    return [html.Div(id="numbers-title", className="fg-titlerow"), grid]


def build_table_page(pages: Sequence[Page]) -> Page:
    """Return the page that shows the parts of the given pages."""

    def fill(view: TableView, context: PageContext, _theme: Theme) -> Slots | PageNotice:
        page_and_part = find_part(pages, view)
        if page_and_part is None:
            return PageNotice("This page has no such table", (anchor("Back to the page", href(view.source)),))
        _, part = page_and_part
        table = part.read_rows(view.source, context)
        rows = [_to_cells(row, table.columns) for row in table.rows[:MAX_ROWS]]
        return {
            "numbers-title.children": _build_title(part.title, view, len(table.rows)),
            "numbers-grid.columnDefs": [_define_column(name, rows) for name in table.columns],
            "numbers-grid.rowData": rows,
        }

    slots = ("numbers-title.children", "numbers-grid.columnDefs", "numbers-grid.rowData")
    return Page("numbers", TableView, slots, build_body, fill)


def _build_title(title: str, view: TableView, row_count: int) -> list[Component]:
    limit = f", first {MAX_ROWS:,} shown; the CSV file has all" if row_count > MAX_ROWS else ""
    return [
        html.H1(title),
        html.Span(f"{format_count(row_count, 'row')}{limit}; times in UTC", className="fg-sub"),
        anchor("Back to the page", href(view.source), "fg-link"),
        file_link("Download CSV", view.source, view.part),
    ]


def _to_cells(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the row's cells by column: numbers, texts and booleans unchanged, lists and maps as text."""
    return {name: _to_cell(row.get(name)) for name in columns}


def _to_cell(value: Any) -> Any:
    cell = to_json_value(value)
    if isinstance(cell, list):
        return ", ".join(map(str, cell))
    if isinstance(cell, dict):
        return ", ".join(f"{name} {element}" for name, element in cell.items())
    return cell


def _define_column(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sample = next((row[name] for row in rows if row[name] is not None), None)
    column: dict[str, Any] = {"field": name, "headerName": name}
    if isinstance(sample, str) and _INSTANT_PATTERN.match(sample):
        return column | {"minWidth": 195}
    if isinstance(sample, int | float) and not isinstance(sample, bool):
        return column | {"type": "rightAligned", "filter": "agNumberColumnFilter"}
    return column
