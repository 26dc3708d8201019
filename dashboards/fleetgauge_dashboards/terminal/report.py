"""`fleetgauge report`: the weekly reliability review."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_core.runtime.cli import InputError, console
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.reader.review_week import ReviewReader
from fleetgauge_dashboards.report.html import html_file
from fleetgauge_dashboards.report.markdown import Letterhead, markdown
from fleetgauge_dashboards.report.pdf import PrintError, pdf
from fleetgauge_dashboards.terminal.options import (
    Asked,
    asked,
    held_week,
    lake_options,
    no_week,
    one_line_errors,
    week_argument,
)
from fleetgauge_dashboards.terminal.output import answer_json
from fleetgauge_dashboards.views.review import Review, asked_week, review


@click.command(
    epilog="""\b
Example:
  fleetgauge report
  fleetgauge report 2026-03-02 --format html --output review.html
  fleetgauge report 2026-03-02 --format pdf --output review.pdf
  fleetgauge report 2026-03-02 --json | jq .causes"""
)
@week_argument(required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "html", "pdf"]),
    default="md",
    show_default=True,
    help="Markdown, one HTML file that needs no other, or that as Chromium prints it.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.  [default: stdout]",
)
@lake_options
@click.option("--json", "as_json", is_flag=True, help="Print what the review says as one JSON object.")
def report(
    week: datetime | None,
    form: str,
    output: Path | None,
    config: Path | None,
    lake: str | None,
    as_json: bool,
) -> None:
    """Write the reliability review of a week: what changed, what burned, what was done about it.

    WEEK is any day of it, by default of the newest week that is over. A closed week's review is the same
    whenever it is written, but for revisions, which it names.
    """
    if form == "pdf" and output is None and sys.stdout.isatty():
        raise InputError("a terminal shows no PDF: name a file with --output")
    source = asked(lake, config)
    with one_line_errors(), console.status("reading the lake"):
        found = _review(source, week, datetime.now(UTC))
    if as_json:
        answer_json(asdict(found))
    else:
        _write(_rendered(found, _letterhead(source), form), output)


def _review(source: Asked, day: datetime | None, now: datetime) -> Review:
    lake = Lake(source.lake)
    weeks = lake.weeks()
    asked_for = None if day is None else held_week(weeks, day, source.lake)
    week = asked_week(weeks, asked_for, source.week.zone, now)
    if week is None:
        raise no_week(source.lake)
    return review(week, ReviewReader(lake).known(week))


def _letterhead(source: Asked) -> Letterhead:
    if source.fleet is None:
        return Letterhead(source.lake)
    fleet = source.fleet
    return Letterhead(fleet.name, fleet.simulated, fleet.page_url, zone=fleet.week.zone)


def _rendered(found: Review, of: Letterhead, form: str) -> bytes:
    words = markdown(found, of)
    if form == "md":
        return words.encode()
    html = html_file(words, f"{of.name}: week of {found.week.week}")
    if form == "html":
        return html.encode()
    try:
        with console.status("printing"):
            return pdf(html, found.week.closes_at)
    except PrintError as error:
        raise InputError(str(error)) from error


def _write(document: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(document)
        return
    try:
        output.write_bytes(document)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}; name another file with --output") from error
    console.print(f"written: {output}", markup=False, soft_wrap=True)
