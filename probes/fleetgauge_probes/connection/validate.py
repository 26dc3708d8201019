"""The command `fleetgauge validate`; `validate_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import PathParam, json_option


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge validate fleet.yaml
  fleetgauge validate fleet.yaml --connect
  fleetgauge validate --schema > fleet.schema.json""",
)
@click.argument("config", type=PathParam(), default="fleet.yaml")
@click.option(
    "--connect",
    is_flag=True,
    help="Connect to every cluster and to the receivers of notifications, and check them without changing "
    "anything or notifying anybody; exit 1 if a check fails.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of fleet files instead, for an editor.")
@json_option("Print the fleet with its defaults on stdout as JSON; with --connect, the checks.")
def validate(**options: Any) -> None:
    """Check a fleet file and summarize it; with --connect, check its clusters and notifiers as well."""
    from fleetgauge_probes.connection.validate_command import validate_fleet_file

    validate_fleet_file(**options)
