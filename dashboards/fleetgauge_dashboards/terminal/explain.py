"""The command `fleetgauge explain`; `explain_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_dashboards.terminal.options import lake_options, output_options, week_argument


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge explain orders-eu 2026-03-02
  fleetgauge explain orders-eu 2026-03-02 --json | jq .bad_stretches
  fleetgauge explain orders-eu 2026-03-02 --csv > minutes.csv""",
)
@click.argument("cluster", metavar="CLUSTER")
@week_argument(required=True)
@lake_options
@output_options
def explain(**options: Any) -> None:
    """Explain a cluster's week: the minutes, brokers and probes that determine its service levels.

    WEEK is any day of the week. Expired minutes are replaced by the evidence that was kept when the week
    closed. --csv prints the week's minutes.
    """
    from fleetgauge_dashboards.terminal.explain_command import explain_cluster_week

    explain_cluster_week(**options)
