"""`fleetgauge correct`."""

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
from fleetgauge_core.slo.corrections import RECURRENCES

_config = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
_lake = click.option("--lake", "location", help="Where the tables are, instead of the fleet file's `lake`.")
_author = click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="Who answers for it."
)
_json = click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")


@click.group(epilog="Example: fleetgauge correct list")
def correct() -> None:
    """Take minutes out of the levels, on record; the uncorrected numbers stay beside them."""


@correct.command(
    epilog="Example: fleetgauge correct add --cluster orders-eu --from 2026-03-02T10:00:00Z "
    "--to 2026-03-02T11:00:00Z --reason 'Kafka 4.3 upgrade'"
)
@click.option("--cluster", "cluster_id", help="A whole cluster.")
@click.option("--broker", "broker_id", type=int, help="Only this broker of the cluster.")
@click.option("--segment", metavar="NAME=VALUE", help="Every cluster of a segment, as region=eu-west-1.")
@click.option("--from", "starts", type=TimestampParam(), required=True, help="The first minute.")
@click.option(
    "--to", "ends", type=TimestampParam(), required=True, help="The first minute that counts again."
)
@click.option("--recurs", type=click.Choice(sorted(RECURRENCES)), help="Again at the same local time.")
@click.option("--until", "recurs_until", type=TimestampParam(), help="No recurrence starts then or later.")
@click.option("--reason", required=True, help="Why; the weekly review repeats it.")
@_author
@_config
@_lake
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
    """Take minutes of a broker, a cluster or a segment out of measured and expected alike."""
    fleet = _fleet(config)
    if ends <= starts:
        raise InputError(f"--to {ends:%FT%TZ} is not after --from {starts:%FT%TZ}")
    if recurs and ends - starts > RECURRENCES[recurs]:
        raise InputError(f"--recurs {recurs} with a span longer than that: its occurrences would overlap")
    if recurs_until and not recurs:
        raise InputError("--until needs --recurs")
    row: TableRow = {
        "correction_id": uuid.uuid4().hex[:12],
        **_scope(fleet, config, cluster_id, broker_id, segment),
        "starts": starts,
        "ends": ends,
        "recurs": recurs,
        "recurs_until": recurs_until,
        "reason": reason,
        "author": author,
        "created_at": datetime.now(UTC),
    }
    with _one_line():
        CorrectionStore(location or fleet.lake).insert(row)
    console.print(f"correction {row['correction_id']} counts with the stream's next batch", markup=False)
    if as_json:
        print_json(_plain(row))


@correct.command("list", epilog="Example: fleetgauge correct list --json")
@_config
@_lake
@_json
def list_(config: Path, location: str | None, as_json: bool) -> None:
    """Every correction, withdrawn ones too."""
    now = datetime.now(UTC)
    with _one_line():
        rows = CorrectionStore(location or _fleet(config).lake).rows()
    if as_json:
        print_json([_plain(row) | {"state": correction_status(row, now)} for row in rows])
        return
    for row in rows:
        console.print(_line(row, now), markup=False, soft_wrap=True)


@correct.command(epilog="Example: fleetgauge correct withdraw 3f2a9c01d4e7")
@click.argument("correction_id", metavar="ID")
@_author
@_config
@_lake
@_json
def withdraw(correction_id: str, author: str, config: Path, location: str | None, as_json: bool) -> None:
    """Let a correction's minutes count again; it stays on record."""
    with _one_line():
        found = CorrectionStore(location or _fleet(config).lake).withdraw(
            correction_id, datetime.now(UTC), author
        )
    if not found:
        raise InputError(f"no correction {correction_id} counts; see fleetgauge correct list")
    console.print(f"correction {correction_id} is withdrawn", markup=False)
    if as_json:
        print_json({"correction_id": correction_id, "withdrawn_by": author})


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except TableStoreError as error:
        raise InputError(str(error)) from error


def _scope(
    fleet: Fleet, config: Path, cluster_id: str | None, broker_id: int | None, segment: str | None
) -> TableRow:
    if (cluster_id is None) == (segment is None):
        raise InputError("say either --cluster (with or without --broker) or --segment")
    if segment is not None:
        name, _, value = segment.partition("=")
        if broker_id is not None or not value:
            raise InputError("--segment is NAME=VALUE, as region=eu-west-1, and takes no --broker")
        if not any((name, value) in cluster.segments for cluster in fleet.clusters):
            raise InputError(f"{config}: no cluster has {segment}")
        return {"scope": "segment", "segment": name, "segment_value": value}
    if cluster_id not in {cluster.id for cluster in fleet.clusters}:
        known = ", ".join(cluster.id for cluster in fleet.clusters[:10])
        raise InputError(f"{config}: no cluster {cluster_id} (known: {known})")
    scope = "cluster" if broker_id is None else "broker"
    return {"scope": scope, "cluster_id": cluster_id, "broker_id": broker_id}


def _line(row: TableRow, now: datetime) -> str:
    recurs = f", {row['recurs']}" if row["recurs"] else ""
    span = f"{row['starts']:%FT%RZ} to {row['ends']:%FT%RZ}{recurs}"
    said = f"{row['reason']} ({row['author']})"
    return f"{row['correction_id']}  {correction_status(row, now):9}  {_what(row)}  {span}  {said}"


def _what(row: TableRow) -> str:
    if row["scope"] == "segment":
        return f"{row['segment']}={row['segment_value']}"
    return (
        f"{row['cluster_id']}, broker {row['broker_id']}"
        if row["scope"] == "broker"
        else f"{row['cluster_id']}"
    )


def _plain(row: TableRow) -> TableRow:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _fleet(config: Path) -> Fleet:
    try:
        return load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
