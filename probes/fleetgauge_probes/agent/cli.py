"""`fleetgauge probe`."""

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from fleetgauge_probes.agent.run import AgentBrokenError, run_agent
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.cli import Address, InputError, console, listen_option, print_json
from fleetgauge_probes.fleet import Fleet, FleetFileError, Telemetry, load
from fleetgauge_probes.stopping import stopping_on_signals
from fleetgauge_probes.vitals import Vitals, serving

#: The loop goes round four times a second; a minute of standing is no slowness.
_PATIENCE_S = 60
_MB = 1_000_000


@click.command(epilog="Example: fleetgauge probe --config fleet.yaml")
@click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
@click.option(
    "--spool",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where records wait for the telemetry cluster; without it the folder spool beside the fleet file.",
)
@click.option(
    "--spool-max-mb",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Beyond this the oldest waiting records are dropped; six brokers make 12 MB a day.",
)
@listen_option
@click.option(
    "--json", "as_json", is_flag=True, help="Say on stdout, as JSON, which run this was when it ends."
)
def probe(config: Path, spool: Path | None, spool_max_mb: int, listen: Address | None, as_json: bool) -> None:
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
    kept = Spool(spool or config.parent / "spool", spool_max_mb * _MB)
    with serving(vitals, listen), _opened(kept):
        waiting = _probe(fleet, fleet.telemetry, kept, run_id, vitals)
    if as_json:
        clusters = [cluster.id for cluster in fleet.clusters]
        print_json({"run_id": str(run_id), "clusters": clusters, "waiting": waiting})


@contextmanager
def _opened(spool: Spool) -> Iterator[None]:
    """Raises InputError when records cannot wait there."""
    try:
        left_open = spool.open()
        if left_open:
            console.print(f"an earlier run was killed: its {left_open} open records go out as last kept")
        try:
            yield
        finally:
            spool.close()
    except SpoolError as error:
        raise InputError(f"{error}; name another folder with --spool") from error


def _probe(fleet: Fleet, telemetry: Telemetry, spool: Spool, run_id: uuid.UUID, vitals: Vitals) -> int:
    stopping = stopping_on_signals()
    console.print(f"probing {len(fleet.clusters)} clusters, run {run_id}; ^C ends it")
    try:
        waiting = run_agent(fleet, telemetry, spool, run_id, vitals, stopping)
    except AgentBrokenError:
        console.print("fleetgauge: the agent broke and has ended; the log above says where", style="red")
        raise SystemExit(1) from None
    if waiting:
        console.print(f"{waiting} records wait in {spool.folder} for the next run", soft_wrap=True)
    return waiting
