"""The commands `fleetgauge probe` and `fleetgauge probe acls`; `fleetgauge_probes.command` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import (
    PathParam,
    config_option,
    json_option,
    listen_option,
    log_option,
    make_shard_option,
    strict_option,
)


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog="Example: fleetgauge probe --config fleet.yaml --shard 2/5",
)
@config_option
@click.option(
    "--spool",
    type=PathParam(file_okay=False),
    help="Folder that keeps records until the telemetry cluster has them.  "
    "[default: the folder `spool` beside the fleet file]",
)
@click.option(
    "--spool-max-mb",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Size of the spool beyond which the oldest records are dropped.",
)
@make_shard_option("Probe only part i of n of the clusters, to share them among n agents with a spool each.")
@strict_option
@listen_option
@log_option
@json_option("Print the run id, the clusters and the number of records left on stdout as JSON, at the end.")
@click.pass_context
def probe(context: click.Context, /, **options: Any) -> None:
    """Probe every broker of the fleet with 100 messages a minute on each of two legs, until stopped.

    Changes to the clusters in the fleet file take effect while the agent runs. A cluster that cannot be used
    is left out, reported and tried again.
    """
    if context.invoked_subcommand:
        return
    from fleetgauge_probes.command import probe_fleet

    probe_fleet(**options)


@probe.command(epilog="Example: fleetgauge probe acls --for watch --principal User:fleetgauge-watch")
@config_option
@click.option(
    "--for",
    "role",
    type=click.Choice(["agent", "watch", "stream", "observe", "recover", "mitigate"]),
    default="agent",
    show_default=True,
    help="The process that needs them.",
)
@click.option(
    "--principal",
    default="User:fleetgauge",
    show_default=True,
    help="Kafka principal to grant them to.",
)
@json_option("Print the grants on stdout as JSON.")
def acls(**options: Any) -> None:
    """Print the least permissions that a process needs, as commands that grant them."""
    from fleetgauge_probes.command import print_grants

    print_grants(**options)
