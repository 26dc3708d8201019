"""`fleetgauge watch`."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_operations.watch.notify import summary, webhooks
from fleetgauge_operations.watch.run import run_watch
from fleetgauge_pipelines.detection import Finding
from fleetgauge_probes.cli import InputError, console, print_json
from fleetgauge_probes.fleet import FleetFileError, load
from fleetgauge_probes.kafka import KafkaUnavailableError
from fleetgauge_probes.stopping import stopping_on_signals


@click.command(epilog="Example: fleetgauge watch --config fleet.yaml")
@click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Say on stdout, as JSON, who is named when the watch ends."
)
def watch(config: Path, as_json: bool) -> None:
    """Name sick brokers within seconds and tell the notifiers, until stopped."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the pulses are")
    stopping = stopping_on_signals()
    sinks = webhooks(fleet.notifiers)
    for sink in sinks:
        sink.start()
    console.print(f"watching {len(fleet.clusters)} clusters, {len(sinks)} notifiers; ^C ends it")
    try:
        state = run_watch(fleet.telemetry, lambda: datetime.now(UTC), _show, sinks, stopping)
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be read: {error}") from error
    finally:
        for sink in sinks:
            sink.stop()
    if as_json:
        print_json([{"cluster": cluster, "broker": broker} for cluster, broker in state.open_findings()])


def _show(finding: Finding) -> None:
    event = finding.event
    at = event.at.strftime("%H:%M:%S")
    if finding.names or finding.clears:
        console.print(f"{at} {summary(finding)}", style="bold red" if finding.names else "green")
    else:
        console.print(
            f"{at} {event.cluster_id}: broker {event.broker_id} {event.from_state} -> {event.to_state}"
        )
