"""The page of the weekly review: the content of `fleetgauge report`, with links to the other pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from urllib.parse import urlencode

from dash import html
from flask import Flask, Response, request

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import ReviewView, parse_view
from fleetgauge_dashboards.pages.components import Component, week_menu
from fleetgauge_dashboards.pages.files import file_response, text_response
from fleetgauge_dashboards.pages.markdown_components import convert_markdown
from fleetgauge_dashboards.pages.page import FleetContexts, Page, PageContext, PageNotice, Slots
from fleetgauge_dashboards.reader import LakeError
from fleetgauge_dashboards.reader.review_week import ReviewReader
from fleetgauge_dashboards.report.html import render_html
from fleetgauge_dashboards.report.markdown import ReportOptions, render_body, render_markdown
from fleetgauge_dashboards.views.fleet import describe_revision
from fleetgauge_dashboards.views.review import Review, build_review, resolve_review_week


def build_body() -> list[Component]:
    """Return the page's layout."""
    return [
        html.Div(id="review-title", className="fg-titlerow"),
        html.Article(id="review-text", className="fg-panel fg-review"),
    ]


def fill(view: ReviewView, context: PageContext, _theme: Theme) -> Slots | PageNotice:
    """Return the review, or a notice while there is no week."""
    weeks_and_review = _build_review(context, view.week)
    if weeks_and_review is None:
        return PageNotice(
            "No week yet",
            ("No week has been computed. It appears with the next batch of fleetgauge stream.",),
        )
    weeks, week_review = weeks_and_review
    fleet, zone = context.fleet, context.time_format(view).zone
    report_options = ReportOptions(fleet.name, fleet.simulated, "", view.display, zone)
    return {
        "review-title.children": _title_row(view, week_review, weeks),
        "review-text.children": convert_markdown(render_body(week_review, report_options)),
    }


def register_downloads(server: Flask, contexts: FleetContexts) -> None:
    """Register /review/2026-03-02.html and .md: the files that `fleetgauge report` writes."""

    def download(week: str, form: str) -> Response:
        view = parse_view("/review", request.query_string.decode(errors="replace"))
        context = contexts.get(view.display.fleet if view else None)
        requested_day = _parse_day(week)
        try:
            weeks_and_review = _build_review(context, requested_day) if context and requested_day else None
        except LakeError as error:
            return text_response(str(error), 503)
        if weeks_and_review is None or weeks_and_review[1].week.week != requested_day:
            return text_response("there is no such week", 404)
        assert context is not None
        fleet = context.fleet
        text = render_markdown(
            weeks_and_review[1], ReportOptions(fleet.name, fleet.simulated, zone=fleet.week_zone)
        )
        if form == "md":
            return file_response(text, "text/markdown", f"review-{week}.md")
        page = render_html(text, f"{context.fleet.name}: week of {week}")
        return file_response(page, "text/html", f"review-{week}.html")

    server.add_url_rule("/review/<week>.<any(html, md):form>", "review", download)


def _build_review(context: PageContext, requested_day: date | None) -> tuple[Sequence[date], Review] | None:
    """Return all weeks, newest first, and the review of the requested or newest ended week."""
    weeks = context.lake.weeks()
    week = resolve_review_week(weeks, requested_day, context.fleet.week_zone, context.clock())
    return None if week is None else (weeks, build_review(week, ReviewReader(context.lake).read(week)))


def _parse_day(week: str) -> date | None:
    try:
        return date.fromisoformat(week)
    except ValueError:
        return None


def _title_row(view: ReviewView, week_review: Review, weeks: Sequence[date]) -> list[Component]:
    week = week_review.week.week
    query = urlencode({"fleet": view.display.fleet}) if view.display.fleet else ""
    return [
        html.H1(f"Review, week of {week:%a %d %b %Y}"),
        html.Span(describe_revision(week_review.closed, week_review.revision), className="fg-sub"),
        week_menu([(day, replace(view, week=day)) for day in weeks], week),
        *(
            html.A(
                label,
                href=f"{view.display.prefix}/review/{week}.{form}?{query}".rstrip("?"),
                className="fg-link",
                download="",
            )
            for label, form in (("Download HTML", "html"), ("Download Markdown", "md"))
        ),
    ]


PAGE = Page(
    name="review",
    view=ReviewView,
    slots=("review-title.children", "review-text.children"),
    build_body=build_body,
    fill=fill,
)
