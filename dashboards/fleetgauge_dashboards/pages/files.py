"""Serve the rows behind a part of a page as a CSV file: /csv?of=URL&part=NAME, with the page's URL."""

from collections.abc import Sequence

from dash import Dash
from flask import Response, request

from fleetgauge_dashboards.links import TableView, parse_table_view
from fleetgauge_dashboards.pages.page import FleetContexts, Page, PagePart
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.serialization import format_csv


def register(app: Dash, pages: Sequence[Page], contexts: FleetContexts) -> None:
    """Register the /csv endpoint."""

    def download() -> Response:
        view = parse_table_view(request.args, request.script_root)
        context = contexts.get(view.display.fleet) if view else None
        page_and_part = find_part(pages, view) if view else None
        if view is None or page_and_part is None or context is None:
            return text_response("unknown page, part or fleet", 404)
        page, part = page_and_part
        try:
            rows = part.read_rows(view.source, context)
        except LakeError as error:
            return text_response(str(error), 503)
        return file_response(format_csv(rows.columns, rows.rows), "text/csv", f"{page.name}-{part.name}.csv")

    app.server.add_url_rule("/csv", "csv", download)


def find_part(pages: Sequence[Page], view: TableView) -> tuple[Page, PagePart] | None:
    """Return the page and part that a table view refers to, or None."""
    for page in pages:
        part = page.get_part(view.part)
        if isinstance(view.source, page.view) and part is not None:
            return page, part
    return None


def text_response(message: str, status: int) -> Response:
    """Return a plain-text response of one line."""
    return Response(f"{message}\n", status, mimetype="text/plain")


def file_response(text: str, mimetype: str, name: str) -> Response:
    """Return a response that the browser saves as a file."""
    return Response(
        text, mimetype=mimetype, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
