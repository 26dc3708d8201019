"""`fleetgauge probe`."""

import gc
import logging
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    Telemetry,
    load,
)
from fleetgauge_core.kafka import KafkaUnavailableError, ensure_usable
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
from fleetgauge_probes.agent.fleet_file import FleetFile
from fleetgauge_probes.agent.run import AgentBrokenError, run_agent
from fleetgauge_probes.agent.shard import Shard
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.connection import grants

#: The loop goes round four times a second; a minute of standing is no slowness.
_PATIENCE_S = 60
#: How long a thread may compute while another waits: a fifth of what Python grants; a probe may be waiting.
_SWITCH_S = 0.001
#: Collections of the middle generation before one of all; Python's own number is 10.
_MIDDLES_BEFORE_ALL = 200
_MB = 1_000_000


class _ShardOf(click.ParamType[Shard]):
    """A shard, as ``2/5``."""

    name = "i/n"

    def convert(self, value: str | Shard, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        try:
            return value if isinstance(value, Shard) else Shard.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_config = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)


@click.group(invoke_without_command=True, epilog="Example: fleetgauge probe --config fleet.yaml --shard 2/5")
@_config
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
    help="Beyond this the oldest waiting records are dropped.",
)
@click.option(
    "--shard",
    type=_ShardOf(),
    default=Shard(),
    show_default="all of them",
    help="Measure one of n parts of the clusters, so that n agents share them, each with a spool of its own.",
)
@listen_option
@log_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Say on stdout, as JSON, which run it was and how many records wait.",
)
@click.pass_context
def probe(
    context: click.Context,
    config: Path,
    spool: Path | None,
    spool_max_mb: int,
    shard: Shard,
    listen: Address | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Probe every broker of the fleet, 100 messages a minute on each of two legs, until stopped.

    Clusters that come, go or change in the fleet file do so in the agent as well, while it runs.
    """
    if context.invoked_subcommand:
        return
    start_logging(log_format)
    # kafka-python narrates every reconnect; what of it matters is logged by the agent.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    file = FleetFile(config)
    try:
        fleet = file.read()
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.simulated:
        raise InputError(f"{config}: simulated is true: measure with a fleet file and a lake of their own")
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the records go")
    try:
        for access in (fleet.telemetry.access, *(one.access for one in shard.of_clusters(fleet.clusters))):
            ensure_usable(access)
    except KafkaUnavailableError as error:
        raise InputError(f"{config}: {error}") from error
    run_id, vitals = uuid.uuid4(), Vitals("probe", _PATIENCE_S)
    kept = Spool(spool or config.parent / shard.folder, spool_max_mb * _MB)

    def clusters() -> tuple[Cluster, ...]:
        return shard.of_clusters(file.clusters())

    with serving(vitals, listen), _opened(kept):
        waiting = _probe(fleet, fleet.telemetry, clusters, kept, run_id, vitals)
    if as_json:
        ids = [cluster.id for cluster in clusters()]
        print_json({"run_id": str(run_id), "clusters": ids, "waiting": waiting})


@probe.command(epilog="Example: fleetgauge probe acls --config fleet.yaml --principal User:fleetgauge")
@_config
@click.option(
    "--principal",
    default="User:fleetgauge",
    show_default=True,
    help="Whom to give them to, as Kafka knows it.",
)
@click.option("--json", "as_json", is_flag=True, help="Say them on stdout as JSON.")
def acls(config: Path, principal: str, as_json: bool) -> None:
    """Print the least rights that the agent needs, as commands that grant them."""
    try:
        found = list(grants(load(config)))
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if as_json:
        print_json({"principal": principal, "grants": [asdict(one) for one in found]})
    else:
        for one in found:
            click.echo(one.command(principal))


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


def _be_prompt() -> None:
    """Let no probe that is due wait for this process's own housekeeping: with 300 brokers it shows."""
    sys.setswitchinterval(_SWITCH_S)
    # A collection of all generations stops everything for 100 ms. What is imported stays anyway, and of the
    # rest little lives long and is in a cycle: once in some minutes is enough.
    gc.freeze()
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, _MIDDLES_BEFORE_ALL)


def _probe(
    fleet: Fleet,
    telemetry: Telemetry,
    clusters: Callable[[], tuple[Cluster, ...]],
    spool: Spool,
    run_id: uuid.UUID,
    vitals: Vitals,
) -> int:
    _be_prompt()
    stopping = stopping_on_signals()
    console.print(f"probing {len(clusters())} clusters, run {run_id}; ^C ends it")
    try:
        waiting = run_agent(fleet, telemetry, clusters, spool, run_id, vitals, stopping)
    except AgentBrokenError:
        console.print("fleetgauge: the agent broke and has ended; the log above says where", style="red")
        raise SystemExit(1) from None
    if waiting:
        console.print(f"{waiting} records wait in {spool.folder} for the next run", soft_wrap=True)
    return waiting
