"""What `fleetgauge report` does: write the weekly reliability review."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.runtime.cli import InputError
from fleetgauge_core.runtime.console import console
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.reader.review_week import ReviewReader
from fleetgauge_dashboards.report.html import render_html
from fleetgauge_dashboards.report.markdown import ReportOptions, render_markdown
from fleetgauge_dashboards.report.pdf import print_pdf
from fleetgauge_dashboards.terminal.lake_source import LakeSource, no_week_error, resolve_source, select_week
from fleetgauge_dashboards.terminal.output import write_json
from fleetgauge_dashboards.views.review import Review, build_review, resolve_review_week


def write_review(
    week: datetime | None,
    form: str,
    output: Path | None,
    config: Path | None,
    location: str | None,
    as_json: bool,
) -> None:
    """Write the review of a week. Raises: InputError; PrintError; LakeError."""
    if form == "pdf" and output is None and sys.stdout.isatty():
        raise InputError("a PDF cannot be printed to a terminal: name a file with --output")
    source = resolve_source(location, config)
    with console.status("reading the lake"):
        week_review = _build_review(source, week, datetime.now(UTC))
    if as_json:
        write_json(asdict(week_review))
    else:
        _write(_render(week_review, _report_options(source), form), output)


def _build_review(source: LakeSource, day: datetime | None, now: datetime) -> Review:
    lake = LakeReader(source.lake)
    weeks = lake.weeks()
    requested_week = None if day is None else select_week(weeks, day, source.lake)
    week = resolve_review_week(weeks, requested_week, source.week.zone, now)
    if week is None:
        raise no_week_error(source.lake)
    return build_review(week, ReviewReader(lake).read(week))


def _report_options(source: LakeSource) -> ReportOptions:
    if source.fleet is None:
        return ReportOptions(source.lake)
    fleet = source.fleet
    return ReportOptions(fleet.name, fleet.simulated, fleet.page_url, zone=fleet.week.zone)


def _render(week_review: Review, options: ReportOptions, form: str) -> bytes:
    text = render_markdown(week_review, options)
    if form == "md":
        return text.encode()
    html = render_html(text, f"{options.name}: week of {week_review.week.week}")
    if form == "html":
        return html.encode()
    with console.status("printing"):
        return print_pdf(html, week_review.week.closes_at)


def _write(document: bytes, output: Path | None) -> None:
    if output is None and sys.stdout.isatty():
        # A terminal may have another encoding than a file; a PDF is never written to one.
        sys.stdout.write(document.decode())
        return
    if output is None:
        sys.stdout.buffer.write(document)
        return
    try:
        output.write_bytes(document)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}; name another file with --output") from error
    console.print(f"written: {output}", markup=False, soft_wrap=True)
