"""The command `fleetgauge backtest`; `backtest_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command, TimestampParam
from fleetgauge_core.runtime.options import config_option, json_option, lake_option


@click.command(
    cls=Command, epilog="Example: fleetgauge backtest --from 2026-03-02T00:00:00Z --to 2026-03-09T00:00:00Z"
)
@click.option("--from", "since", type=TimestampParam(), required=True, help="Start of the period (included).")
@click.option("--to", "until", type=TimestampParam(), required=True, help="End of the period (not included).")
@config_option
@lake_option
@json_option("Print the alerts on stdout as JSON.")
def backtest(**options: Any) -> None:
    """Recompute the burn alerts of a past period with the objectives and windows of a fleet file.

    They are compared with the alerts that the watch sent at the time. To try other objectives, edit a copy of
    the fleet file. For broker findings, use `fleetgauge replay run`.
    """
    from fleetgauge_pipelines.jobs.backtest_command import recompute_alerts

    recompute_alerts(**options)
