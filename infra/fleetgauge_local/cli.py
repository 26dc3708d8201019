"""The commands of `fleetgauge fleet`; `commands` runs them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import json_option
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.options import directory_option

F = TypeVar("F", bound=Callable[..., Any])


_directory = directory_option("fleet", "The fleet's folder.")
_json = json_option("Print one JSON value on stdout.")


def _examples(*lines: str) -> str:
    """Return an epilog with examples; the backspace character prevents click from rewrapping the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


@click.group(cls=Group, epilog="Example: fleetgauge fleet up")
def fleet() -> None:
    """Run real Kafka clusters on this machine and inject faults into them."""


@fleet.command(
    epilog=_examples("fleetgauge fleet up --dir /tmp/fleet", "fleetgauge fleet up --topology regions")
)
@_directory
@click.option("--fresh", is_flag=True, help="Delete the topics and records of earlier runs.")
@click.option(
    "--topology",
    type=click.Choice(list(TOPOLOGIES)),
    default="clusters",
    show_default=True,
    help="Two clusters; or two regions, each with an aggregate cluster that MirrorMaker fills from both.",
)
@_json
def up(**options: Any) -> None:
    """Start Kafka clusters and a telemetry cluster; they run until `fleet down`.

    Topology `clusters` has two clusters of three brokers each. Topology `regions` has the clusters north and
    south, their aggregates north-all and south-all, each of one broker, and a mirror into each aggregate.
    """
    from fleetgauge_local.commands import start_fleet

    start_fleet(**options)


@fleet.command(epilog="Example: fleetgauge fleet down")
@_directory
@_json
def down(**options: Any) -> None:
    """End the fleet's processes; their data is kept for the next `fleet up`."""
    from fleetgauge_local.commands import stop_fleet

    stop_fleet(**options)


@fleet.command(epilog="Example: fleetgauge fleet status --json")
@_directory
@_json
def status(**options: Any) -> None:
    """Show the process, state and injected fault of every broker and mirror."""
    from fleetgauge_local.commands import show_status

    show_status(**options)


@fleet.command(epilog="Example: fleetgauge fleet restart orders 2")
@click.argument("cluster")
@click.argument("broker", type=int)
@_directory
@_json
def restart(**options: Any) -> None:
    """Restart a broker in an orderly way: it hands over its leaderships, ends and starts with its data.

    Returns when the new process has been started; the broker serves some seconds later.
    """
    from fleetgauge_local.commands import restart_broker

    restart_broker(**options)


@fleet.group(epilog="Example: fleetgauge fleet fault slow orders 2 --ms 50")
def fault() -> None:
    """Inject a fault into a broker or mirror, or heal it."""


def _broker_arguments(command: F) -> F:
    """Add the arguments of a fault that applies only to brokers."""
    for decorate in (_json, _directory, click.argument("broker", type=int), click.argument("cluster")):
        command = decorate(command)
    return command


def _broker_or_mirror_arguments(command: F) -> F:
    """Add the arguments of a fault that applies to brokers and mirrors."""
    arguments = (
        click.argument("broker", type=int, required=False),
        click.argument("cluster", required=False),
    )
    mirror = click.option(
        "--mirror", metavar="CLUSTER", help="Instead of a broker: the mirror into this cluster."
    )
    for decorate in (_json, _directory, mirror, *arguments):
        command = decorate(command)
    return command


@fault.command(
    epilog=_examples(
        "fleetgauge fleet fault hang orders 2 --for 30",
        "fleetgauge fleet fault hang --mirror north-all --for 60",
    )
)
@_broker_or_mirror_arguments
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(min=0, min_open=True),
    help="Duration in seconds; without it, until `heal`.",
)
def hang(**options: Any) -> None:
    """Suspend the process (SIGSTOP): connections stay open, but nothing responds or is replicated."""
    from fleetgauge_local.commands import fault_broker_or_mirror

    fault_broker_or_mirror(kind="hang", **options)


@fault.command(
    epilog=_examples("fleetgauge fleet fault kill orders 2", "fleetgauge fleet fault kill --mirror north-all")
)
@_broker_or_mirror_arguments
def kill(**options: Any) -> None:
    """Kill the process (SIGKILL): connections are reset and new ones refused."""
    from fleetgauge_local.commands import fault_broker_or_mirror

    fault_broker_or_mirror(kind="kill", **options)


@fault.command(epilog="Example: fleetgauge fleet fault slow orders 2 --ms 50")
@_broker_arguments
@click.option(
    "--ms",
    "delay_ms",
    type=click.FloatRange(min=0),
    required=True,
    help="Delay in each direction, in milliseconds.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of client data to delay; below 1 only some requests are slow.",
)
def slow(**options: Any) -> None:
    """Delay all data between the broker and its clients, or a share of the requests."""
    from fleetgauge_local.commands import fault_broker

    fault_broker(kind="slow", **options)


@fault.command(epilog="Example: fleetgauge fleet fault blackhole payments 1")
@_broker_arguments
def blackhole(**options: Any) -> None:
    """Drop all data between the broker and its clients; other brokers still reach it."""
    from fleetgauge_local.commands import fault_broker

    fault_broker(kind="blackhole", **options)


@fault.command(
    epilog=_examples("fleetgauge fleet fault heal orders 2", "fleetgauge fleet fault heal --mirror north-all")
)
@_broker_or_mirror_arguments
def heal(**options: Any) -> None:
    """Undo every fault; a killed process starts again with its data."""
    from fleetgauge_local.commands import fault_broker_or_mirror

    fault_broker_or_mirror(kind="heal", **options)
