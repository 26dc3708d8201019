"""The commands of `fleetgauge correct`."""

import getpass
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_core.fleet import Fleet, FleetFileError, load_fleet
from fleetgauge_core.lake.corrections import CorrectionStore, correction_status
from fleetgauge_core.lake.table_store import TableRow, TableStoreError
from fleetgauge_core.runtime.cli import (
    InputError,
    TimestampParam,
    console,
    print_json,
)
from fleetgauge_core.runtime.options import config_option, json_option, lake_option
from fleetgauge_core.slo.corrections import RECURRENCES

_author = click.option(
    "--author",
    default=getpass.getuser,
    show_default="the user's login",
    help="Person or script that is responsible; stored in ops/corrections.",
)
_json = json_option()


@click.group(epilog="Example: fleetgauge correct list")
def correct() -> None:
    """Exclude minutes from the service levels, with a recorded reason; uncorrected values are kept, too."""


@correct.command(
    epilog="Example: fleetgauge correct add --cluster orders-eu --from 2026-03-02T10:00:00Z "
    "--to 2026-03-02T11:00:00Z --reason 'Kafka 4.3 upgrade'"
)
@click.option("--cluster", "cluster_id", help="ID of the cluster.")
@click.option("--broker", "broker_id", type=int, help="Only this broker of the cluster.")
@click.option("--segment", metavar="NAME=VALUE", help="All clusters of a segment, such as region=eu-west-1.")
@click.option("--from", "starts", type=TimestampParam(), required=True, help="First minute that is excluded.")
@click.option(
    "--to", "ends", type=TimestampParam(), required=True, help="First minute that is not excluded any more."
)
@click.option("--recurs", type=click.Choice(sorted(RECURRENCES)), help="Repeat at the same local time.")
@click.option(
    "--until", "recurs_until", type=TimestampParam(), help="Time from which on no repetition starts."
)
@click.option("--reason", required=True, help="Reason; shown in the weekly review, too.")
@_author
@config_option
@lake_option
@_json
def add(
    cluster_id: str | None,
    broker_id: int | None,
    segment: str | None,
    starts: datetime,
    ends: datetime,
    recurs: str | None,
    recurs_until: datetime | None,
    reason: str,
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Exclude minutes of a broker, a cluster or a segment from measured and expected minutes alike."""
    fleet = _read_fleet_file(config)
    if ends <= starts:
        raise InputError(f"--to {ends:%FT%TZ} is not after --from {starts:%FT%TZ}")
    if recurs and ends - starts > RECURRENCES[recurs]:
        raise InputError(
            f"--recurs {recurs}: the range is longer than its period, so its occurrences would overlap"
        )
    if recurs_until and not recurs:
        raise InputError("--until needs --recurs")
    row: TableRow = {
        "correction_id": uuid.uuid4().hex[:12],
        **_build_scope(fleet, config, cluster_id, broker_id, segment),
        "starts": starts,
        "ends": ends,
        "recurs": recurs,
        "recurs_until": recurs_until,
        "reason": reason,
        "author": author,
        "created_at": datetime.now(UTC),
    }
    with _errors_as_input_errors():
        CorrectionStore(location or fleet.lake).insert(row)
    console.print(
        f"correction {row['correction_id']} takes effect with the stream's next batch", markup=False
    )
    if as_json:
        print_json(_to_json(row))


@correct.command("list", epilog="Example: fleetgauge correct list --json")
@config_option
@lake_option
@_json
def list_(config: Path, location: str | None, as_json: bool) -> None:
    """List all corrections, withdrawn ones too."""
    now = datetime.now(UTC)
    with _errors_as_input_errors():
        rows = CorrectionStore(location or _read_fleet_file(config).lake).rows()
    if as_json:
        print_json([_to_json(row) | {"state": correction_status(row, now)} for row in rows])
        return
    for row in rows:
        console.print(_format_row(row, now), markup=False, soft_wrap=True)


@correct.command(epilog="Example: fleetgauge correct withdraw 3f2a9c01d4e7")
@click.argument("correction_id", metavar="ID")
@_author
@config_option
@lake_option
@_json
def withdraw(correction_id: str, author: str, config: Path, location: str | None, as_json: bool) -> None:
    """Withdraw a correction, so that its minutes count again; its row is kept."""
    with _errors_as_input_errors():
        is_withdrawn = CorrectionStore(location or _read_fleet_file(config).lake).withdraw(
            correction_id, datetime.now(UTC), author
        )
    if not is_withdrawn:
        raise InputError(f"no correction {correction_id} is in effect; see fleetgauge correct list")
    console.print(f"correction {correction_id} is withdrawn", markup=False)
    if as_json:
        print_json({"correction_id": correction_id, "withdrawn_by": author})


@contextmanager
def _errors_as_input_errors() -> Iterator[None]:
    try:
        yield
    except TableStoreError as error:
        raise InputError(str(error)) from error


def _build_scope(
    fleet: Fleet, config: Path, cluster_id: str | None, broker_id: int | None, segment: str | None
) -> TableRow:
    if (cluster_id is None) == (segment is None):
        raise InputError("give either --cluster, with or without --broker, or --segment")
    if segment is not None:
        name, _, value = segment.partition("=")
        if broker_id is not None or not value:
            raise InputError("--segment is NAME=VALUE, such as region=eu-west-1, and excludes --broker")
        if not any((name, value) in cluster.segments for cluster in fleet.clusters):
            raise InputError(f"{config}: no cluster is in segment {segment}")
        return {"scope": "segment", "segment": name, "segment_value": value}
    if cluster_id not in {cluster.id for cluster in fleet.clusters}:
        known = ", ".join(cluster.id for cluster in fleet.clusters[:10])
        raise InputError(f"{config}: no cluster {cluster_id} (known: {known})")
    scope = "cluster" if broker_id is None else "broker"
    return {"scope": scope, "cluster_id": cluster_id, "broker_id": broker_id}


def _format_row(row: TableRow, now: datetime) -> str:
    recurs = f", {row['recurs']}" if row["recurs"] else ""
    time_range = f"{row['starts']:%FT%RZ} to {row['ends']:%FT%RZ}{recurs}"
    reason = f"{row['reason']} ({row['author']})"
    status = correction_status(row, now)
    return f"{row['correction_id']}  {status:9}  {_format_scope(row)}  {time_range}  {reason}"


def _format_scope(row: TableRow) -> str:
    if row["scope"] == "segment":
        return f"{row['segment']}={row['segment_value']}"
    return (
        f"{row['cluster_id']}, broker {row['broker_id']}"
        if row["scope"] == "broker"
        else f"{row['cluster_id']}"
    )


def _to_json(row: TableRow) -> TableRow:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _read_fleet_file(config: Path) -> Fleet:
    try:
        return load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
