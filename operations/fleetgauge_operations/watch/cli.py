"""`fleetgauge watch`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_core.detection import Finding, FleetHealth
from fleetgauge_core.fleet import (
    Fleet,
    FleetFileError,
    SecretError,
    Telemetry,
    load_fleet,
)
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import (
    InputError,
    ListenAddress,
    console,
    print_json,
)
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging, log_option
from fleetgauge_core.runtime.options import listen_option
from fleetgauge_core.runtime.shutdown import install_shutdown_handlers
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.message_format import summarize
from fleetgauge_operations.watch.metrics import WatchMetrics

#: The loop goes round twice a second; a minute of standing is no slowness.
_PATIENCE_S = 60


@click.command(epilog="Example: fleetgauge watch --config fleet.yaml")
@click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
@listen_option
@log_option
@click.option(
    "--json", "as_json", is_flag=True, help="Say on stdout, as JSON, what is named when the watch ends."
)
def watch(config: Path, listen: ListenAddress | None, log_format: str, as_json: bool) -> None:
    """Name what is sick within seconds and tell the notifiers, until stopped."""
    configure_logging(log_format)
    try:
        fleet = load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the pulses are")
    health = ProcessHealth("watch", _PATIENCE_S)
    with serve_health(health, listen):
        state = _watch(fleet, fleet.telemetry, health)
    if as_json:
        print_json(
            [
                {"cluster": one.cluster_id, "broker": one.broker_id, "vantage": one.vantage, "kind": phase}
                for one, phase in state.open_findings()
            ]
        )


def _watch(fleet: Fleet, telemetry: Telemetry, health: ProcessHealth) -> FleetHealth:
    shutdown = install_shutdown_handlers()
    console.print(f"watching {len(fleet.clusters)} clusters, {len(fleet.notifiers)} notifiers; ^C ends it")
    try:
        return WatchController(fleet, telemetry, _now, _show, health, WatchMetrics(health.registry)).run(
            shutdown
        )
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be read: {error}") from error
    except SecretError as error:
        raise InputError(f"notifiers: {error}") from error


def _now() -> datetime:
    return datetime.now(UTC)


def _show(finding: Finding) -> None:
    event = finding.event
    at = event.at.strftime("%H:%M:%S")
    if finding.is_alert or finding.is_cleared:
        console.print(
            f"{at} {summarize(finding.subject, finding.from_state, finding.to_state)}",
            style="bold red" if finding.is_alert else "green",
        )
    else:
        console.print(
            f"{at} {event.cluster_id}: broker {event.broker_id} {event.from_state} -> {event.to_state}"
        )
