"""The command `fleetgauge init`; `init_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import PathParam, json_option


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge init
  fleetgauge init --cluster orders --bootstrap kafka-1:9092,kafka-2:9092""",
)
@click.option(
    "--output",
    type=PathParam(),
    default="fleet.yaml",
    show_default=True,
    help="Path of the new fleet file.",
)
@click.option(
    "--cluster",
    "ids",
    metavar="ID",
    multiple=True,
    help="Id of a cluster to measure; repeat it for several clusters.",
)
@click.option(
    "--bootstrap",
    "bootstraps",
    metavar="HOST:PORT",
    multiple=True,
    help="Bootstrap servers of the cluster; one for each --cluster, in the same order.",
)
@click.option(
    "--telemetry",
    metavar="HOST:PORT",
    help="Bootstrap servers of the telemetry cluster.  [default: the first --bootstrap]",
)
@click.option("--lake", metavar="PATH", help="Folder or URI of the lake.  [default: ./lake]")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option("Print the path of the written file and the next commands on stdout as JSON.")
def init(**options: Any) -> None:
    """Write a fleet file with comments; in a terminal, ask for values that no option gives."""
    from fleetgauge_probes.connection.init_command import write_fleet_file

    write_fleet_file(**options)
