"""What `fleetgauge probe` and `fleetgauge probe acls` do."""

import gc
import logging
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from fleetgauge_core.fleet import Cluster, Fleet, Telemetry, load_fleet, require_telemetry
from fleetgauge_core.fleet.fleet_file import FleetFile
from fleetgauge_core.fleet.usable_fleet import list_messages
from fleetgauge_core.kafka.credentials_monitor import require_readable_credentials
from fleetgauge_core.runtime.cli import InputError, ListenAddress, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shard import Shard
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_probes.agent.run import run_agent
from fleetgauge_probes.agent.spool import Spool, SpoolError
from fleetgauge_probes.connection.acls import list_grants

#: Pulses and records in flight are delivered within 11 s; Kubernetes waits 30 s.
_SHUTDOWN_DEADLINE_S = 20
#: The main loop records a heartbeat four times a second; only a minute without one means that it hangs.
_HEARTBEAT_TIMEOUT_S = 60
#: How long a thread may compute while another waits: a fifth of Python's default, as a probe may be waiting.
_THREAD_SWITCH_INTERVAL_S = 0.001
#: Collections of the middle generation before a full one; Python's default is 10.
_FULL_COLLECTION_THRESHOLD = 200
_MB = 1_000_000
#: Keys of the fleet file that the agent does not use.
_UNUSED_KEYS = ("notifiers", "page_url", "change_sources")
_ENTRY_REMEDY = "correct it: until then the cluster is left out, or stays as it was"


def probe_fleet(
    config: Path,
    spool: Path | None,
    spool_max_mb: int,
    shard: Shard,
    strict: bool,
    listen: ListenAddress | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Run the agent until a signal stops it. Raises: InputError or an OperationalError if it cannot start."""
    configure_logging(log_format)
    # kafka-python logs every reconnect; the agent logs the relevant errors itself.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    fleet_file = FleetFile(
        config, time.monotonic, applied_keys=("clusters",), unused_keys=_UNUSED_KEYS, strict=strict
    )
    fleet, telemetry = _load_probed_fleet(fleet_file)
    if strict:
        clusters = shard.select_clusters(fleet.clusters)
        require_readable_credentials(telemetry.access, {cluster.id: cluster.access for cluster in clusters})
    run_id, health = uuid.uuid4(), ProcessHealth("probe", _HEARTBEAT_TIMEOUT_S)
    record_spool = Spool(spool or config.parent / f"spool{shard.suffix}", spool_max_mb * _MB)

    def select_clusters() -> tuple[Cluster, ...]:
        clusters = fleet_file.refresh().clusters
        health.parts.update(
            "cluster", PartFault.ENTRY, list_messages(fleet_file.problems, "cluster", _ENTRY_REMEDY)
        )
        return shard.select_clusters(clusters)

    with (
        # The fleet file is read again whenever it changes, so that a lost terminal need not end the agent.
        supervise_process(_SHUTDOWN_DEADLINE_S, ends_on_hangup=False) as shutdown,
        serve_health(health, listen),
        _open_spool(record_spool),
    ):
        waiting = _run_agent(fleet, telemetry, select_clusters, record_spool, run_id, health, shutdown)
    if as_json:
        ids = [cluster.id for cluster in select_clusters()]
        print_json({"run_id": str(run_id), "clusters": ids, "waiting": waiting})


def print_grants(config: Path, role: str, principal: str, as_json: bool) -> None:
    """Print the least permissions that a process needs on stdout; ``role`` is one of acls.ROLES."""
    grants = list(list_grants(load_fleet(config), role))
    if as_json:
        print_json({"principal": principal, "for": role, "grants": [asdict(grant) for grant in grants]})
    else:
        for grant in grants:
            click.echo(grant.format_command(principal))


def _load_probed_fleet(fleet_file: FleetFile) -> tuple[Fleet, Telemetry]:
    """Load the fleet and its telemetry cluster.

    Raises: InputError or an OperationalError when the fleet cannot be probed.
    """
    fleet, path = fleet_file.load(), fleet_file.path
    if fleet.simulated:
        raise InputError(f"{path}: simulated is true: use another fleet file, with another lake, to probe")
    return fleet, require_telemetry(fleet, path)


@contextmanager
def _open_spool(spool: Spool) -> Iterator[None]:
    """Keep the spool open. Raises: InputError when records cannot be stored in it."""
    try:
        left_open = spool.open()
        if left_open:
            console.print(f"an earlier run was killed: {left_open} open minutes are sent as last stored")
        try:
            yield
        finally:
            spool.close()
    except SpoolError as error:
        raise InputError(f"{error}; set another folder with --spool") from error


def _reduce_latency() -> None:
    """Reduce how long a due probe waits for this process itself; with 300 brokers it is noticeable."""
    sys.setswitchinterval(_THREAD_SWITCH_INTERVAL_S)
    # A full collection stops all threads for 100 ms. Imported modules are never freed anyway, and few other
    # objects live long and are part of a reference cycle, so one every few minutes is enough.
    gc.freeze()
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, _FULL_COLLECTION_THRESHOLD)


def _run_agent(
    fleet: Fleet,
    telemetry: Telemetry,
    select_clusters: Callable[[], tuple[Cluster, ...]],
    spool: Spool,
    run_id: uuid.UUID,
    health: ProcessHealth,
    shutdown: ShutdownFlag,
) -> int:
    """Run the agent until it is to end; return the number of records left in the spool."""
    _reduce_latency()
    console.print(f"probing {len(select_clusters())} clusters, run {run_id}; stop with Ctrl-C")
    waiting = run_agent(fleet, telemetry, select_clusters, spool, run_id, health, shutdown)
    if waiting:
        console.print(f"{waiting} records are left in {spool.folder} for the next run", soft_wrap=True)
    return waiting
