"""The numbers behind a page as a file: /csv?of=ADDRESS, where ADDRESS is the page's own."""

from collections.abc import Sequence

from dash import Dash
from flask import Response, request

from fleetgauge_dashboards.links import parse
from fleetgauge_dashboards.pages.page import Contexts, Page
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.written import csv_text


def register(app: Dash, pages: Sequence[Page], contexts: Contexts) -> None:
    def download() -> Response:
        pathname, _, search = request.args.get("of", "").partition("?")
        view = parse(pathname, search)
        page = next((page for page in pages if page.rows and isinstance(view, page.view)), None)
        context = contexts.get(view.fleet) if view else None
        if page is None or page.rows is None or context is None:
            return words("there are no such numbers", 404)
        try:
            found = page.rows(view, context)
        except LakeError as error:
            return words(str(error), 503)
        return attachment(csv_text(found.columns, found.rows), "text/csv", f"{page.name}.csv")

    app.server.add_url_rule("/csv", "csv", download)


def words(said: str, status: int) -> Response:
    """One line instead of a file."""
    return Response(f"{said}\n", status, mimetype="text/plain")


def attachment(text: str, mimetype: str, name: str) -> Response:
    return Response(
        text, mimetype=mimetype, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
