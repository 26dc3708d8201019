"""``fleetgauge fleet``: real Kafka clusters on this machine, and faults for them."""

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
from fleetgauge_local.messages import BrokerStatus, Fault, FleetStatus, Kind, MirrorFault

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


def _examples(*lines: str) -> str:
    """The backspace keeps click from filling the lines."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except LocalFleetError as error:
        raise InputError(str(error)) from error


@click.group(epilog="Example: fleetgauge fleet up")
def fleet() -> None:
    """Run real Kafka clusters on this machine, and break them."""


@fleet.command(
    epilog=_examples("fleetgauge fleet up --dir /tmp/fleet", "fleetgauge fleet up --topology regions")
)
@_directory
@click.option("--fresh", is_flag=True, help="Without the topics and records of earlier runs.")
@click.option(
    "--topology",
    type=click.Choice(list(TOPOLOGIES)),
    default="clusters",
    show_default=True,
    help="Two clusters; or two regions, each with an aggregate that MirrorMaker copies both into.",
)
@_json
def up(directory: Path, fresh: bool, topology: str, as_json: bool) -> None:
    """Start real clusters and one for telemetry; they stay until `fleet down`.

    `clusters` are two of three brokers each. `regions` are north and south of one broker each, their
    aggregates north-all and south-all likewise, and a mirror into each of these.
    """
    chosen = TOPOLOGIES[topology]
    with _one_line_errors(), console.status("starting brokers") as spinner:
        local = LocalFleet(directory, chosen.clusters, mirrors=chosen.mirrors, progress=spinner.update)
        status = local.start(detached=True, fresh=fresh)
    if as_json:
        print_json(_document(status, local))
    else:
        for cluster in status.clusters:
            click.echo(f"{cluster.cluster}: {cluster.bootstrap}")
        for mirror in status.mirrors:
            click.echo(f"mirror {mirror.mirror}: copies {' and '.join(mirror.sources)} into it")
        console.print(f"described in {local.fleet_file}", markup=False, soft_wrap=True)


@fleet.command(epilog="Example: fleetgauge fleet down")
@_directory
@_json
def down(directory: Path, as_json: bool) -> None:
    """End the fleet's processes; their data stays for the next `fleet up`."""
    with _one_line_errors(), console.status("ending brokers"):
        ended = LocalFleet(directory).stop()
    if as_json:
        print_json({"ended": ended})
    else:
        console.print(f"ended {ended} processes" if ended else f"nothing ran in {directory}", markup=False)


@fleet.command(epilog="Example: fleetgauge fleet status --json")
@_directory
@_json
def status(directory: Path, as_json: bool) -> None:
    """Show every broker and mirror: its process, and the fault it is under."""
    with _one_line_errors():
        local = LocalFleet(directory)
        now = local.status()
    if as_json:
        print_json(_document(now, local))
    else:
        console.print(_table(now))
        if now.mirrors:
            console.print(_table_of_mirrors(now))


@fleet.group(epilog="Example: fleetgauge fleet fault slow orders 2 --ms 50")
def fault() -> None:
    """Break one broker or mirror, or heal it."""


def _of_a_broker(command: F) -> F:
    """The arguments of a fault that only a broker can have."""
    for add in (_json, _directory, click.argument("broker", type=int), click.argument("cluster")):
        command = add(command)
    return command


def _of_either(command: F) -> F:
    """The arguments of a fault that a broker or a mirror can have."""
    arguments = (
        click.argument("broker", type=int, required=False),
        click.argument("cluster", required=False),
    )
    mirror = click.option("--mirror", metavar="CLUSTER", help="Instead: the mirror that copies into it.")
    for add in (_json, _directory, mirror, *arguments):
        command = add(command)
    return command


@fault.command(
    epilog=_examples(
        "fleetgauge fleet fault hang orders 2 --for 30",
        "fleetgauge fleet fault hang --mirror north-all --for 60",
    )
)
@_of_either
@click.option("--for", "for_s", type=click.FloatRange(min=0, min_open=True), help="Seconds until it heals.")
def hang(
    cluster: str | None,
    broker: int | None,
    mirror: str | None,
    directory: Path,
    as_json: bool,
    for_s: float | None,
) -> None:
    """Stop the process where it stands: connections stay, nothing answers or is copied."""
    _do_to_either("hang", cluster, broker, mirror, directory, as_json, for_s)


@fault.command(
    epilog=_examples("fleetgauge fleet fault kill orders 2", "fleetgauge fleet fault kill --mirror north-all")
)
@_of_either
def kill(cluster: str | None, broker: int | None, mirror: str | None, directory: Path, as_json: bool) -> None:
    """Kill the process: connections break, new ones are refused."""
    _do_to_either("kill", cluster, broker, mirror, directory, as_json)


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


@fault.command(
    epilog=_examples("fleetgauge fleet fault heal orders 2", "fleetgauge fleet fault heal --mirror north-all")
)
@_of_either
def heal(cluster: str | None, broker: int | None, mirror: str | None, directory: Path, as_json: bool) -> None:
    """Undo every fault; what was killed starts again on its data."""
    _do_to_either("heal", cluster, broker, mirror, directory, as_json)


def _do_to_either(
    kind: Kind,
    cluster: str | None,
    broker: int | None,
    mirror: str | None,
    directory: Path,
    as_json: bool,
    for_s: float | None = None,
) -> None:
    if mirror is not None and cluster is None:
        with _one_line_errors():
            done = LocalFleet(directory).fault_mirror(kind, mirror, for_s=for_s)
        _tell(done, f"mirror {done.mirror}", as_json)
    elif cluster is not None and broker is not None and mirror is None:
        _do(kind, cluster, broker, directory, as_json, for_s=for_s)
    else:
        raise InputError(
            f"name a cluster and its broker, or a mirror: {kind} orders 2, {kind} --mirror north-all"
        )


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
    _tell(done, f"broker {done.broker} of {done.cluster}", as_json)


def _tell(done: Fault | MirrorFault, whom: str, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(f"{done.at} {done.kind}: {whom}")


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


def _table_of_mirrors(status: FleetStatus) -> Table:
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
