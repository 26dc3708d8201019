"""The command `fleetgauge watch`; `command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import (
    config_option,
    json_option,
    listen_option,
    log_option,
    strict_option,
)


@click.command(cls=Command, epilog="Example: fleetgauge watch --config fleet.yaml")
@config_option
@strict_option
@click.option(
    "--observe",
    is_flag=True,
    help="Also run `fleetgauge observe` in a process of its own, which ends with the watch.",
)
@listen_option
@log_option
@json_option("Print the findings that are open when the watch ends on stdout as JSON.")
def watch(**options: Any) -> None:
    """Detect faults of brokers, clusters and paths within seconds and notify people, until stopped.

    Changes of the fleet file take effect while the watch runs. A notifier that cannot be used is reported and
    tried again.
    """
    from fleetgauge_operations.watch.command import watch_fleet

    watch_fleet(**options)
