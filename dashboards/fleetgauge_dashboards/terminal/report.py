"""The command `fleetgauge report`; `report_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import PathParam, json_option
from fleetgauge_dashboards.terminal.options import lake_options, week_argument


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge report
  fleetgauge report 2026-03-02 --format html --output review.html
  fleetgauge report 2026-03-02 --format pdf --output review.pdf
  fleetgauge report 2026-03-02 --json | jq .causes""",
)
@week_argument(required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "html", "pdf"]),
    default="md",
    show_default=True,
    help="Markdown, a self-contained HTML file, or a PDF printed by Chromium.",
)
@click.option(
    "--output",
    type=PathParam(dir_okay=False, is_written=True),
    help="The file to write.  [default: stdout]",
)
@lake_options
@json_option("Print the review's data as one JSON object.")
def report(**options: Any) -> None:
    """Write the reliability review of a week: changes, causes of bad minutes, incidents and actions.

    WEEK is any day of the week, by default of the newest week that has ended. The review of a closed week
    is reproducible, except for later revisions, which it lists.
    """
    from fleetgauge_dashboards.terminal.report_command import write_review

    write_review(**options)
