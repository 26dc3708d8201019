"""The command `fleetgauge slo`; `slo_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_dashboards.terminal.options import lake_options, output_options, week_argument


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge slo
  fleetgauge slo 2026-03-02 --config fleet.yaml
  fleetgauge slo --without reassignment
  fleetgauge slo --json | jq '.clusters[] | select((.latency_budget_left_minutes // 0) < 0)'""",
)
@week_argument(required=False)
@click.option(
    "--without",
    metavar="NAME",
    help="Leave out the minutes that a cause explains, such as roll, or the change, finding or action with"
    " this ID.",
)
@lake_options
@output_options
def slo(**options: Any) -> None:
    """Show a week's service levels: the fleet, then its clusters, worst first.

    WEEK is any day of the week, by default of the newest. Clusters are sorted by the smaller remaining share
    of their latency and availability error budgets. For the newest week, while it is open, the output
    includes burn rates and the burn alerts that fire, or are frozen because of missing data.
    """
    from fleetgauge_dashboards.terminal.slo_command import show_levels

    show_levels(**options)
