"""What the commands `observe`, `changes` and `change` do."""

import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.fleet import (
    WHOLE_FLEET,
    Cluster,
    Fleet,
    load_fleet,
    require_cluster,
    require_telemetry,
    split_segment,
)
from fleetgauge_core.fleet.fleet_file import FleetFile
from fleetgauge_core.fleet.usable_fleet import list_messages
from fleetgauge_core.kafka import explain_telemetry_errors
from fleetgauge_core.kafka.credentials_monitor import require_readable_credentials
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.runtime.cli import InputError, ListenAddress, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.part_status import PartFault
from fleetgauge_core.runtime.shard import Shard
from fleetgauge_core.runtime.steady_clock import SteadyClock
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_operations.changes.change_costs import cost_document, format_costs, read_costs
from fleetgauge_operations.changes.change_output import format_change
from fleetgauge_operations.changes.change_topic import ChangePublisher, read_change_records, select_changes
from fleetgauge_operations.changes.observe_controller import ObserveController
from fleetgauge_operations.changes.plan.reported_change import (
    ReportedChange,
    ReportedChangeError,
    build_reported_record,
    round_to_ms,
    withdraw,
)
from fleetgauge_operations.changes.stored_changes import merge_records, read_stored_changes
from fleetgauge_operations.changes.throttle_owners import create_throttle_completion

#: Observers wait at most 8 s for a hung cluster, 3 s for their leadership, 8 s to deliver what is left, and
#: 10 s to leave their group; an answer of the telemetry cluster may be awaited before.
_SHUTDOWN_DEADLINE_S = 45
#: The main loop records a heartbeat twice a second; only a minute without one means that it hangs.
_HEARTBEAT_TIMEOUT_S = 60
#: Keys of the fleet file that an observer does not use.
_UNUSED_KEYS = ("notifiers", "page_url", "recovery", "objectives", "week", "change_sources")
_ENTRY_REMEDY = "correct it: until then the cluster is left out, or stays as it was"
_DEFAULT_PERIOD = timedelta(days=1)


def observe_fleet(
    config: Path,
    shard: Shard,
    strict: bool,
    listen: ListenAddress | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Run the observers until a signal stops them. Raises: InputError or an OperationalError at the start."""
    configure_logging(log_format)
    # kafka-python logs every reconnect; the observer logs the relevant errors itself.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    fleet_file = FleetFile(
        config, time.monotonic, applied_keys=("clusters",), unused_keys=_UNUSED_KEYS, strict=strict
    )
    fleet = fleet_file.load()
    if fleet.simulated:
        raise InputError(f"{config}: simulated is true: its clusters do not exist, so none can be observed")
    telemetry = require_telemetry(fleet, config)
    if strict:
        clusters = shard.select_clusters(fleet.clusters)
        require_readable_credentials(telemetry.access, {cluster.id: cluster.access for cluster in clusters})
    health = ProcessHealth("observe", _HEARTBEAT_TIMEOUT_S)

    def select_clusters() -> tuple[Cluster, ...]:
        clusters = fleet_file.refresh().clusters
        health.parts.update(
            "cluster", PartFault.ENTRY, list_messages(fleet_file.problems, "cluster", _ENTRY_REMEDY)
        )
        return shard.select_clusters(clusters)

    controller = ObserveController(
        telemetry,
        shard,
        select_clusters,
        create_throttle_completion(fleet.lake),
        SteadyClock().now,
        health,
        _print_change,
    )
    with (
        # The fleet file is read again whenever it changes, so that a lost terminal need not end the process.
        supervise_process(_SHUTDOWN_DEADLINE_S, ends_on_hangup=False) as shutdown,
        serve_health(health, listen),
        explain_telemetry_errors(),
    ):
        console.print(f"observing {len(select_clusters())} clusters; stop with Ctrl+C")
        controller.run(shutdown)
    if as_json:
        ids = [cluster.id for cluster in select_clusters()]
        print_json({"clusters": ids, "published": controller.published})


def list_changes(
    cluster_id: str | None,
    since: datetime | None,
    kinds: Sequence[str],
    cost: bool,
    config: Path,
    as_json: bool,
) -> None:
    """Print changes in order of time, from the lake and from the topic what is not there yet.

    A lake that cannot be read is said and left out. Raises: InputError for an unknown cluster;
    KafkaUnavailableError.
    """
    fleet = load_fleet(config)
    cluster = None if cluster_id is None else require_cluster(fleet, config, cluster_id)
    telemetry = require_telemetry(fleet, config)
    with explain_telemetry_errors():
        in_topic = read_change_records(telemetry)
    records = merge_records(_read_lake(fleet, cluster_id), in_topic)
    start = since or datetime.now(UTC) - _DEFAULT_PERIOD
    selected = [
        record for record in select_changes(records, cluster, start) if not kinds or record.kind in kinds
    ]
    costs = read_costs(fleet.lake, [record.change_id for record in selected]) if cost else None
    if as_json:
        print_json([_describe(record, costs) for record in selected])
        return
    for record in selected:
        console.print(format_change(record), markup=False, soft_wrap=True)
        if costs is not None:
            lines = format_costs(costs.get(record.change_id, ())) or ["no cost was computed"]
            console.print("\n".join(f"  {line}" for line in lines), markup=False, soft_wrap=True)
    if not selected:
        hint = "" if records else "; no change was ever recorded: start fleetgauge observe"
        console.print(f"no change since {start:%FT%TZ}{hint}", markup=False)


def _describe(
    record: ClusterChange, costs: Mapping[str, Sequence[Mapping[str, Any]]] | None
) -> dict[str, Any]:
    if costs is None:
        return change_document(record)
    return change_document(record) | {
        "costs": [cost_document(row) for row in costs.get(record.change_id, ())]
    }


def _read_lake(fleet: Fleet, cluster_id: str | None) -> Sequence[ClusterChange]:
    try:
        return read_stored_changes(fleet.lake, cluster_id)
    except TableStoreError as error:
        console.print(f"only the topic is listed: {error}", markup=False)
        return ()


def add_change(
    kind: str,
    title: str,
    cluster_id: str | None,
    broker_id: int | None,
    segment: str | None,
    whole_fleet: bool,
    starts: datetime | None,
    ends: datetime | None,
    link: str | None,
    author: str,
    config: Path,
    as_json: bool,
) -> None:
    """Report a change. Raises: InputError if it cannot be accepted; KafkaUnavailableError."""
    fleet = load_fleet(config)
    telemetry = require_telemetry(fleet, config)
    if (cluster_id is not None) + (segment is not None) + whole_fleet != 1:
        raise InputError("give one of --cluster (with or without --broker), --segment and --fleet")
    now = round_to_ms(datetime.now(UTC))
    name, value = WHOLE_FLEET if whole_fleet else _read_segment(segment)
    try:
        record = build_reported_record(
            ReportedChange(
                kind=kind,
                title=title,
                starts=round_to_ms(starts or now),
                ends=round_to_ms(ends or starts or now),
                cluster_id=cluster_id,
                broker_id=broker_id,
                segment=name,
                segment_value=value,
                author=author,
                link=link,
            ),
            uuid.uuid4().hex,
            "command",
            _describe_segments(fleet),
            now,
        )
    except ReportedChangeError as error:
        raise InputError(str(error)) from error
    with explain_telemetry_errors():
        ChangePublisher(telemetry).publish([record])
    console.print(f"change {record.change_id} is recorded", markup=False)
    if as_json:
        print_json(change_document(record))


def withdraw_change(change_id: str, author: str, config: Path, as_json: bool) -> None:
    """Withdraw a reported change. Raises: InputError if there is none with that ID; KafkaUnavailableError."""
    fleet = load_fleet(config)
    telemetry = require_telemetry(fleet, config)
    with explain_telemetry_errors():
        records = merge_records(_read_lake(fleet, None), read_change_records(telemetry))
        of_change = [record for record in records if record.change_id == change_id]
        if not of_change:
            raise InputError(f"no change has the ID {change_id!r}; `fleetgauge changes --json` lists them")
        try:
            record = withdraw(max(of_change, key=lambda record: record.at), author, datetime.now(UTC))
        except ReportedChangeError as error:
            raise InputError(str(error)) from error
        ChangePublisher(telemetry).publish([record])
    console.print(f"change {change_id} is withdrawn", markup=False)
    if as_json:
        print_json(change_document(record))


def _read_segment(segment: str | None) -> tuple[str | None, str | None]:
    if segment is None:
        return None, None
    if not all(split_segment(segment)):
        raise InputError("--segment is NAME=VALUE, such as region=eu-west-1")
    return split_segment(segment)


def _describe_segments(fleet: Fleet) -> dict[str, frozenset[tuple[str, str]]]:
    return {cluster.id: cluster.segments for cluster in fleet.clusters}


def _print_change(record: ClusterChange) -> None:
    console.print(format_change(record), markup=False, soft_wrap=True)
