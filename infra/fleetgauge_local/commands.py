"""What the commands of `fleetgauge fleet` do: run Kafka clusters on this machine, inject faults into them."""

from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console, print_table
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.runner_protocol import BrokerFault, BrokerStatus, FaultKind, FleetStatus, MirrorFault

#: How long the processes of a fleet that is interrupted may take to end.
_SHUTDOWN_DEADLINE_S = 150.0
#: 128 + SIGINT, as a shell reports it.
_EXIT_INTERRUPTED = 130


def start_fleet(directory: Path, fresh: bool, topology: str, as_json: bool) -> None:
    """Start the processes of a fleet, which run until ``stop_fleet``. Raises: LocalFleetError."""
    selected = TOPOLOGIES[topology]
    try:
        with (
            supervise_process(_SHUTDOWN_DEADLINE_S, interrupts=True),
            console.status("starting brokers") as spinner,
        ):
            local = LocalFleet(
                directory, selected.clusters, mirrors=selected.mirrors, progress=spinner.update
            )
            status = local.start(detached=True, fresh=fresh)
    except KeyboardInterrupt:
        console.print(f"interrupted; what was started in {directory} has ended", soft_wrap=True)
        raise SystemExit(_EXIT_INTERRUPTED) from None
    if as_json:
        print_json(_document(status, local))
    else:
        for cluster in status.clusters:
            click.echo(f"{cluster.cluster}: {cluster.bootstrap}")
        for mirror in status.mirrors:
            click.echo(f"mirror into {mirror.mirror}: from {' and '.join(mirror.sources)}")
        console.print(f"fleet file: {local.fleet_file}", markup=False, soft_wrap=True)


def stop_fleet(directory: Path, as_json: bool) -> None:
    """End the fleet's processes; their data is kept. Raises: LocalFleetError."""
    with console.status("ending brokers"):
        ended = LocalFleet(directory).stop()
    if as_json:
        print_json({"ended": ended})
    else:
        console.print(
            f"ended {ended} processes" if ended else f"no fleet was running in {directory}", markup=False
        )


def show_status(directory: Path, as_json: bool) -> None:
    """Print the process, state and fault of every broker and mirror. Raises: LocalFleetError."""
    local = LocalFleet(directory)
    fleet_status = local.status()
    if as_json:
        print_json(_document(fleet_status, local))
    else:
        print_table(console, _table(fleet_status))
        if fleet_status.mirrors:
            print_table(console, _mirror_table(fleet_status))


def restart_broker(cluster: str, broker: int, directory: Path, as_json: bool) -> None:
    """Restart a broker in an orderly way. Raises: LocalFleetError."""
    with console.status("restarting"):
        restart = LocalFleet(directory).restart(cluster, broker)
    if as_json:
        print_json(asdict(restart))
    else:
        click.echo(f"{restart.started_at} restarted: broker {restart.broker} of {restart.cluster}")


def fault_broker_or_mirror(
    kind: FaultKind,
    cluster: str | None,
    broker: int | None,
    mirror: str | None,
    directory: Path,
    as_json: bool,
    for_s: float | None = None,
) -> None:
    """Inject a fault into a broker or a mirror. Raises: InputError unless one is named; LocalFleetError."""
    if mirror is not None and cluster is None:
        fault_applied = LocalFleet(directory).fault_mirror(kind, mirror, for_s=for_s)
        _print_fault(fault_applied, f"mirror {fault_applied.mirror}", as_json)
    elif cluster is not None and broker is not None and mirror is None:
        fault_broker(kind, cluster, broker, directory, as_json, for_s=for_s)
    else:
        raise InputError(
            f"give a cluster and a broker, or --mirror: {kind} orders 2, {kind} --mirror north-all"
        )


def fault_broker(
    kind: FaultKind,
    cluster: str,
    broker: int,
    directory: Path,
    as_json: bool,
    delay_ms: float | None = None,
    share: float = 1,
    for_s: float | None = None,
) -> None:
    """Inject a fault into a broker. Raises: LocalFleetError."""
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
