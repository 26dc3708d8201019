"""`fleetgauge watch`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_core.detection import Finding, FleetState
from fleetgauge_core.fleet import (
    Fleet,
    FleetFileError,
    SecretError,
    Telemetry,
    load,
)
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import (
    Address,
    InputError,
    console,
    listen_option,
    print_json,
)
from fleetgauge_core.runtime.health_server import Vitals, serving
from fleetgauge_core.runtime.logs import log_option, start_logging
from fleetgauge_core.runtime.shutdown import stopping_on_signals
from fleetgauge_operations.watch.message_format import summary
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.run import Watch

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
def watch(config: Path, listen: Address | None, log_format: str, as_json: bool) -> None:
    """Name what is sick within seconds and tell the notifiers, until stopped."""
    start_logging(log_format)
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the pulses are")
    vitals = Vitals("watch", _PATIENCE_S)
    with serving(vitals, listen):
        state = _watch(fleet, fleet.telemetry, vitals)
    if as_json:
        print_json(
            [
                {"cluster": one.cluster_id, "broker": one.broker_id, "vantage": one.vantage, "kind": phase}
                for one, phase in state.open_findings()
            ]
        )


def _watch(fleet: Fleet, telemetry: Telemetry, vitals: Vitals) -> FleetState:
    stopping = stopping_on_signals()
    console.print(f"watching {len(fleet.clusters)} clusters, {len(fleet.notifiers)} notifiers; ^C ends it")
    try:
        return Watch(fleet, telemetry, _now, _show, vitals, WatchMetrics(vitals.registry)).run(stopping)
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be read: {error}") from error
    except SecretError as error:
        raise InputError(f"notifiers: {error}") from error


def _now() -> datetime:
    return datetime.now(UTC)


def _show(finding: Finding) -> None:
    event = finding.event
    at = event.at.strftime("%H:%M:%S")
    if finding.names or finding.clears:
        console.print(
            f"{at} {summary(finding.subject, finding.from_phase, finding.to_phase)}",
            style="bold red" if finding.names else "green",
        )
    else:
        console.print(
            f"{at} {event.cluster_id}: broker {event.broker_id} {event.from_state} -> {event.to_state}"
        )
