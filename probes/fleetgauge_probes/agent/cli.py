"""`fleetgauge probe`."""

import logging
import uuid
from pathlib import Path

import click

from fleetgauge_probes.agent.run import AgentBrokenError, run_agent
from fleetgauge_probes.cli import Address, InputError, console, listen_option, print_json
from fleetgauge_probes.fleet import Fleet, FleetFileError, Telemetry, load
from fleetgauge_probes.kafka import KafkaUnavailableError
from fleetgauge_probes.stopping import stopping_on_signals
from fleetgauge_probes.vitals import Vitals, serving

#: The loop goes round four times a second; a minute of standing is no slowness.
_PATIENCE_S = 60


@click.command(epilog="Example: fleetgauge probe --config fleet.yaml")
@click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
@listen_option
@click.option(
    "--json", "as_json", is_flag=True, help="Say on stdout, as JSON, which run this was when it ends."
)
def probe(config: Path, listen: Address | None, as_json: bool) -> None:
    """Probe every broker of the fleet, 100 messages a minute on each of two legs, until stopped."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    # kafka-python narrates every reconnect; what of it matters is logged by the agent.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.simulated:
        raise InputError(f"{config}: simulated is true: measure with a fleet file and a lake of their own")
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the records go")
    run_id, vitals = uuid.uuid4(), Vitals("probe", _PATIENCE_S)
    with serving(vitals, listen):
        _probe(fleet, fleet.telemetry, run_id, vitals)
    if as_json:
        print_json({"run_id": str(run_id), "clusters": [cluster.id for cluster in fleet.clusters]})


def _probe(fleet: Fleet, telemetry: Telemetry, run_id: uuid.UUID, vitals: Vitals) -> None:
    stopping = stopping_on_signals()
    console.print(f"probing {len(fleet.clusters)} clusters, run {run_id}; ^C ends it")
    try:
        run_agent(fleet, telemetry, run_id, vitals, stopping)
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be reached: {error}") from error
    except AgentBrokenError:
        console.print("fleetgauge: the agent broke and has ended; the log above says where", style="red")
        raise SystemExit(1) from None
