"""``fleetgauge fleet``: run real Kafka clusters on this machine and inject faults into them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
import platformdirs
from rich.table import Table

from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.runner_protocol import BrokerFault, BrokerStatus, FaultKind, FleetStatus, MirrorFault

F = TypeVar("F", bound=Callable[..., Any])


def default_directory() -> Path:
    """Return the fleet's folder when ``--dir`` is not given."""
    return platformdirs.user_state_path("fleetgauge") / "fleet"


_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_directory,
    show_default="the user's state folder",
    help="The fleet's folder.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON value on stdout.")


def _examples(*lines: str) -> str:
    """Return an epilog with examples; the backspace character prevents click from rewrapping the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except LocalFleetError as error:
        raise InputError(str(error)) from error


@click.group(epilog="Example: fleetgauge fleet up")
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
def up(directory: Path, fresh: bool, topology: str, as_json: bool) -> None:
    """Start Kafka clusters and a telemetry cluster; they run until `fleet down`.

    Topology `clusters` has two clusters of three brokers each. Topology `regions` has the clusters north and
    south, their aggregates north-all and south-all, each of one broker, and a mirror into each aggregate.
    """
    selected = TOPOLOGIES[topology]
    with _translate_errors(), console.status("starting brokers") as spinner:
        local = LocalFleet(directory, selected.clusters, mirrors=selected.mirrors, progress=spinner.update)
        status = local.start(detached=True, fresh=fresh)
    if as_json:
        print_json(_document(status, local))
    else:
        for cluster in status.clusters:
            click.echo(f"{cluster.cluster}: {cluster.bootstrap}")
        for mirror in status.mirrors:
            click.echo(f"mirror into {mirror.mirror}: from {' and '.join(mirror.sources)}")
        console.print(f"fleet file: {local.fleet_file}", markup=False, soft_wrap=True)


@fleet.command(epilog="Example: fleetgauge fleet down")
@_directory
@_json
def down(directory: Path, as_json: bool) -> None:
    """End the fleet's processes; their data is kept for the next `fleet up`."""
    with _translate_errors(), console.status("ending brokers"):
        ended = LocalFleet(directory).stop()
    if as_json:
        print_json({"ended": ended})
    else:
        console.print(
            f"ended {ended} processes" if ended else f"no fleet was running in {directory}", markup=False
        )


@fleet.command(epilog="Example: fleetgauge fleet status --json")
@_directory
@_json
def status(directory: Path, as_json: bool) -> None:
    """Show the process, state and injected fault of every broker and mirror."""
    with _translate_errors():
        local = LocalFleet(directory)
        fleet_status = local.status()
    if as_json:
        print_json(_document(fleet_status, local))
    else:
        console.print(_table(fleet_status))
        if fleet_status.mirrors:
            console.print(_mirror_table(fleet_status))


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
def hang(
    cluster: str | None,
    broker: int | None,
    mirror: str | None,
    directory: Path,
    as_json: bool,
    for_s: float | None,
) -> None:
    """Suspend the process (SIGSTOP): connections stay open, but nothing responds or is replicated."""
    _apply_to_broker_or_mirror("hang", cluster, broker, mirror, directory, as_json, for_s)


@fault.command(
    epilog=_examples("fleetgauge fleet fault kill orders 2", "fleetgauge fleet fault kill --mirror north-all")
)
@_broker_or_mirror_arguments
def kill(cluster: str | None, broker: int | None, mirror: str | None, directory: Path, as_json: bool) -> None:
    """Kill the process (SIGKILL): connections are reset and new ones refused."""
    _apply_to_broker_or_mirror("kill", cluster, broker, mirror, directory, as_json)


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
def slow(cluster: str, broker: int, directory: Path, as_json: bool, delay_ms: float, share: float) -> None:
    """Delay all data between the broker and its clients, or a share of the requests."""
    _apply_to_broker("slow", cluster, broker, directory, as_json, delay_ms=delay_ms, share=share)


@fault.command(epilog="Example: fleetgauge fleet fault blackhole payments 1")
@_broker_arguments
def blackhole(cluster: str, broker: int, directory: Path, as_json: bool) -> None:
    """Drop all data between the broker and its clients; other brokers still reach it."""
    _apply_to_broker("blackhole", cluster, broker, directory, as_json)


@fault.command(
    epilog=_examples("fleetgauge fleet fault heal orders 2", "fleetgauge fleet fault heal --mirror north-all")
)
@_broker_or_mirror_arguments
def heal(cluster: str | None, broker: int | None, mirror: str | None, directory: Path, as_json: bool) -> None:
    """Undo every fault; a killed process starts again with its data."""
    _apply_to_broker_or_mirror("heal", cluster, broker, mirror, directory, as_json)


def _apply_to_broker_or_mirror(
    kind: FaultKind,
    cluster: str | None,
    broker: int | None,
    mirror: str | None,
    directory: Path,
    as_json: bool,
    for_s: float | None = None,
) -> None:
    if mirror is not None and cluster is None:
        with _translate_errors():
            fault_applied = LocalFleet(directory).fault_mirror(kind, mirror, for_s=for_s)
        _print_fault(fault_applied, f"mirror {fault_applied.mirror}", as_json)
    elif cluster is not None and broker is not None and mirror is None:
        _apply_to_broker(kind, cluster, broker, directory, as_json, for_s=for_s)
    else:
        raise InputError(
            f"give a cluster and a broker, or --mirror: {kind} orders 2, {kind} --mirror north-all"
        )


def _apply_to_broker(
    kind: FaultKind,
    cluster: str,
    broker: int,
    directory: Path,
    as_json: bool,
    delay_ms: float | None = None,
    share: float = 1,
    for_s: float | None = None,
) -> None:
    with _translate_errors():
        fault_applied = LocalFleet(directory).fault(
            kind, cluster, broker, delay_ms=delay_ms, share=share, for_s=for_s
        )
    _print_fault(fault_applied, f"broker {fault_applied.broker} of {fault_applied.cluster}", as_json)


def _print_fault(fault_applied: BrokerFault | MirrorFault, target: str, as_json: bool) -> None:
    if as_json:
        print_json(asdict(fault_applied))
    else:
        click.echo(f"{fault_applied.at} {fault_applied.kind}: {target}")


def _document(status: FleetStatus, local: LocalFleet) -> dict[str, object]:
    return asdict(status) | {"directory": str(status.directory), "fleet_file": str(local.fleet_file)}


def _table(status: FleetStatus) -> Table:
    table = Table("cluster", "broker", "rack", "address", "state", "pid", "MiB", "fault")
    for cluster in status.clusters:
        for broker in cluster.brokers:
            table.add_row(
                cluster.cluster,
                str(broker.broker),
                broker.rack,
                broker.address,
                broker.state,
                str(broker.pid or ""),
                str(broker.rss_mib or ""),
                _network_fault(broker),
            )
    return table


def _mirror_table(status: FleetStatus) -> Table:
    table = Table("mirror", "copies", "state", "pid", "MiB")
    for mirror in status.mirrors:
        pid, rss_mib = str(mirror.pid or ""), str(mirror.rss_mib or "")
        table.add_row(mirror.mirror, ", ".join(mirror.sources), mirror.state, pid, rss_mib)
    return table


def _network_fault(broker: BrokerStatus) -> str:
    if broker.blackhole:
        return "black hole"
    if broker.share < 1:
        return f"+{broker.delay_ms:g} ms for {broker.share:.0%}"
    return f"+{broker.delay_ms:g} ms each way" if broker.delay_ms else ""
