"""The numbers behind a page as a file: /csv?of=ADDRESS&part=NAME, where ADDRESS is the page's own."""

from collections.abc import Sequence

from dash import Dash
from flask import Response, request

from fleetgauge_dashboards.links import TableView, parse_table
from fleetgauge_dashboards.pages.page import Contexts, Page, Part
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.serialization import csv_text


def register(app: Dash, pages: Sequence[Page], contexts: Contexts) -> None:
    def download() -> Response:
        view = parse_table(request.args)
        context = contexts.get(view.lens.fleet) if view else None
        found = part_of(pages, view) if view else None
        if view is None or found is None or context is None:
            return words("there are no such numbers", 404)
        page, part = found
        try:
            rows = part.rows(view.of, context)
        except LakeError as error:
            return words(str(error), 503)
        return attachment(csv_text(rows.columns, rows.rows), "text/csv", f"{page.name}-{part.name}.csv")

    app.server.add_url_rule("/csv", "csv", download)


def part_of(pages: Sequence[Page], view: TableView) -> tuple[Page, Part] | None:
    """The page and its part that are asked for."""
    for page in pages:
        part = page.part(view.part)
        if isinstance(view.of, page.view) and part is not None:
            return page, part
    return None


def words(said: str, status: int) -> Response:
    """One line instead of a file."""
    return Response(f"{said}\n", status, mimetype="text/plain")


def attachment(text: str, mimetype: str, name: str) -> Response:
    return Response(
        text, mimetype=mimetype, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
