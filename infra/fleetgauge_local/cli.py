"""``fleetgauge fleet``: real Kafka clusters on this machine, and faults for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
import platformdirs
from rich.table import Table

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.messages import BrokerStatus, FleetStatus, Kind
from fleetgauge_probes.cli import InputError, console, print_json

F = TypeVar("F", bound=Callable[..., Any])


def default_directory() -> Path:
    """Where the fleet lives unless ``--dir`` says otherwise."""
    return platformdirs.user_state_path("fleetgauge") / "fleet"


_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_directory,
    show_default="the user's state folder",
    help="The fleet's folder.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON value on stdout.")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except LocalFleetError as error:
        raise InputError(str(error)) from error


@click.group(epilog="Example: fleetgauge fleet up")
def fleet() -> None:
    """Run real Kafka clusters on this machine, and break them."""


@fleet.command(epilog="Example: fleetgauge fleet up --dir /tmp/fleet")
@_directory
@click.option("--fresh", is_flag=True, help="Without the topics and records of earlier runs.")
@_json
def up(directory: Path, fresh: bool, as_json: bool) -> None:
    """Start two clusters of three brokers and one for telemetry; they stay until `fleet down`."""
    with _one_line_errors(), console.status("starting brokers") as spinner:
        local = LocalFleet(directory, progress=spinner.update)
        status = local.start(detached=True, fresh=fresh)
    if as_json:
        print_json(_document(status, local))
    else:
        for cluster in status.clusters:
            click.echo(f"{cluster.cluster}: {cluster.bootstrap}")
        console.print(f"described in {local.fleet_file}", markup=False, soft_wrap=True)


@fleet.command(epilog="Example: fleetgauge fleet down")
@_directory
@_json
def down(directory: Path, as_json: bool) -> None:
    """End the fleet's brokers; their data stays for the next `fleet up`."""
    with _one_line_errors(), console.status("ending brokers"):
        ended = LocalFleet(directory).stop()
    if as_json:
        print_json({"ended": ended})
    else:
        console.print(f"ended {ended} brokers" if ended else f"nothing ran in {directory}", markup=False)


@fleet.command(epilog="Example: fleetgauge fleet status --json")
@_directory
@_json
def status(directory: Path, as_json: bool) -> None:
    """Show every broker: its address, its process and the fault it is under."""
    with _one_line_errors():
        local = LocalFleet(directory)
        now = local.status()
    if as_json:
        print_json(_document(now, local))
    else:
        console.print(_table(now))


@fleet.group(epilog="Example: fleetgauge fleet fault slow orders 2 --ms 50")
def fault() -> None:
    """Break one broker, or heal it."""


def _of_a_broker(command: F) -> F:
    """The arguments that every fault has."""
    for add in (_json, _directory, click.argument("broker", type=int), click.argument("cluster")):
        command = add(command)
    return command


@fault.command(epilog="Example: fleetgauge fleet fault hang orders 2 --for 30")
@_of_a_broker
@click.option("--for", "for_s", type=click.FloatRange(min=0, min_open=True), help="Seconds until it heals.")
def hang(cluster: str, broker: int, directory: Path, as_json: bool, for_s: float | None) -> None:
    """Stop the process where it stands: connections stay, nothing answers."""
    _do("hang", cluster, broker, directory, as_json, for_s=for_s)


@fault.command(epilog="Example: fleetgauge fleet fault kill orders 2")
@_of_a_broker
def kill(cluster: str, broker: int, directory: Path, as_json: bool) -> None:
    """Kill the process: connections break, new ones are refused."""
    _do("kill", cluster, broker, directory, as_json)


@fault.command(epilog="Example: fleetgauge fleet fault slow orders 2 --ms 50")
@_of_a_broker
@click.option(
    "--ms", "delay_ms", type=click.FloatRange(min=0), required=True, help="Delay each way, in milliseconds."
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Of what clients send: less than 1 makes a slow tail.",
)
def slow(cluster: str, broker: int, directory: Path, as_json: bool, delay_ms: float, share: float) -> None:
    """Delay every byte between the broker and its clients, or some requests."""
    _do("slow", cluster, broker, directory, as_json, delay_ms=delay_ms, share=share)


@fault.command(epilog="Example: fleetgauge fleet fault blackhole payments 1")
@_of_a_broker
def blackhole(cluster: str, broker: int, directory: Path, as_json: bool) -> None:
    """Let nothing pass between the broker and its clients; its peers still reach it."""
    _do("blackhole", cluster, broker, directory, as_json)


@fault.command(epilog="Example: fleetgauge fleet fault heal orders 2")
@_of_a_broker
def heal(cluster: str, broker: int, directory: Path, as_json: bool) -> None:
    """Undo every fault of the broker; a killed one starts again on its data."""
    _do("heal", cluster, broker, directory, as_json)


def _do(
    kind: Kind,
    cluster: str,
    broker: int,
    directory: Path,
    as_json: bool,
    delay_ms: float | None = None,
    share: float = 1,
    for_s: float | None = None,
) -> None:
    with _one_line_errors():
        done = LocalFleet(directory).fault(kind, cluster, broker, delay_ms=delay_ms, share=share, for_s=for_s)
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(f"{done.at} {done.kind}: broker {done.broker} of {done.cluster}")


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


def _network_fault(broker: BrokerStatus) -> str:
    if broker.blackhole:
        return "black hole"
    if broker.share < 1:
        return f"+{broker.delay_ms:g} ms for {broker.share:.0%}"
    return f"+{broker.delay_ms:g} ms each way" if broker.delay_ms else ""
