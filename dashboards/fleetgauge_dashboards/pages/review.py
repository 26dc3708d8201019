"""The weekly review: what `fleetgauge report` writes, with links into the other pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from urllib.parse import urlencode

from dash import html
from flask import Flask, Response, request

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import ReviewView, parse
from fleetgauge_dashboards.pages.files import attachment, words
from fleetgauge_dashboards.pages.markdown_components import marked
from fleetgauge_dashboards.pages.page import Context, Contexts, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, week_menu
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.reader.review_week import ReviewReader
from fleetgauge_dashboards.report.html import html_file
from fleetgauge_dashboards.report.markdown import Letterhead, body, markdown
from fleetgauge_dashboards.views.fleet import standing_in_words
from fleetgauge_dashboards.views.review import Review, asked_week, review


def page_body() -> list[Component]:
    return [
        html.Div(id="review-title", className="fg-titlerow"),
        html.Article(id="review-text", className="fg-panel fg-review"),
    ]


def fill(view: ReviewView, context: Context, _look: Theme) -> Slots | Notice:
    found = _review(context, view.week)
    if found is None:
        return Notice("No week yet", ("A review needs a week. One appears with the pipeline's next batch.",))
    weeks, of_week = found
    fleet, zone = context.fleet, context.times(view).zone
    own_pages = Letterhead(fleet.name, fleet.simulated, "", view.lens, zone)
    return {
        "review-title.children": _title(view, of_week, weeks),
        "review-text.children": marked(body(of_week, own_pages)),
    }


def add_downloads(server: Flask, contexts: Contexts) -> None:
    """/review/2026-03-02.html and .md: the file that `fleetgauge report` writes."""

    def download(week: str, form: str) -> Response:
        view = parse("/review", request.query_string.decode(errors="replace"))
        context = contexts.get(view.lens.fleet if view else None)
        asked = _day(week)
        try:
            found = _review(context, asked) if context and asked else None
        except LakeError as error:
            return words(str(error), 503)
        if found is None or found[1].week.week != asked:
            return words("there is no such week", 404)
        assert context is not None
        fleet = context.fleet
        text = markdown(found[1], Letterhead(fleet.name, fleet.simulated, zone=fleet.week_zone))
        if form == "md":
            return attachment(text, "text/markdown", f"review-{week}.md")
        titled = html_file(text, f"{context.fleet.name}: week of {week}")
        return attachment(titled, "text/html", f"review-{week}.html")

    server.add_url_rule("/review/<week>.<any(html, md):form>", "review", download)


def _review(context: Context, asked: date | None) -> tuple[Sequence[date], Review] | None:
    """All weeks, newest first, and the review of the asked one or the newest that is over."""
    weeks = context.lake.weeks()
    week = asked_week(weeks, asked, context.fleet.week_zone, context.clock())
    return None if week is None else (weeks, review(week, ReviewReader(context.lake).known(week)))


def _day(week: str) -> date | None:
    try:
        return date.fromisoformat(week)
    except ValueError:
        return None


def _title(view: ReviewView, of_week: Review, weeks: Sequence[date]) -> list[Component]:
    week = of_week.week.week
    query = urlencode({"fleet": view.lens.fleet}) if view.lens.fleet else ""
    return [
        html.H1(f"Review, week of {week:%a %d %b %Y}"),
        html.Span(standing_in_words(of_week.closed, of_week.revision), className="fg-sub"),
        week_menu([(day, replace(view, week=day)) for day in weeks], week),
        *(
            html.A(
                form_named,
                href=f"/review/{week}.{form}?{query}".rstrip("?"),
                className="fg-link",
                download="",
            )
            for form_named, form in (("as HTML", "html"), ("as Markdown", "md"))
        ),
    ]


PAGE = Page(
    name="review",
    view=ReviewView,
    slots=("review-title.children", "review-text.children"),
    body=page_body,
    fill=fill,
)
