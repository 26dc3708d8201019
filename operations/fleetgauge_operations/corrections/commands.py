"""What the commands of `fleetgauge correct` do."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import Fleet, load_fleet, require_cluster
from fleetgauge_core.lake.correction_effect import explain_ineffective_correction
from fleetgauge_core.lake.corrections import CorrectionStore, correction_status
from fleetgauge_core.lake.table_store import TableRow
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.slo.correction_effect import CorrectableFleet
from fleetgauge_core.slo.corrections import RECURRENCES


def add_correction(
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
    """Store a correction.

    Raises: InputError if options contradict each other or exclude nothing; TableStoreError.
    """
    fleet = load_fleet(config)
    if ends <= starts:
        raise InputError(f"--to {ends:%FT%TZ} is not after --from {starts:%FT%TZ}")
    if recurs and ends - starts > RECURRENCES[recurs]:
        raise InputError(
            f"--recurs {recurs}: the range is longer than its period, so its occurrences would overlap"
        )
    if recurs_until and not recurs:
        raise InputError("--until needs --recurs")
    now, lake = datetime.now(UTC), location or fleet.lake
    row: TableRow = {
        "correction_id": uuid.uuid4().hex[:12],
        **_build_scope(fleet, config, cluster_id, broker_id, segment),
        "starts": starts,
        "ends": ends,
        "recurs": recurs,
        "recurs_until": recurs_until,
        "reason": reason,
        "author": author,
        "created_at": now,
    }
    if reason_against := explain_ineffective_correction(row, lake, _describe_fleet(fleet), now):
        raise InputError(
            f"the correction would have no effect: {reason_against}; see fleetgauge correct list"
        )
    CorrectionStore(lake).insert(row)
    console.print(
        f"correction {row['correction_id']} takes effect with the stream's next batch", markup=False
    )
    if as_json:
        print_json(_to_json(row))


def list_corrections(config: Path, location: str | None, as_json: bool) -> None:
    """Print all corrections. Raises: TableStoreError."""
    now = datetime.now(UTC)
    rows = CorrectionStore(location or load_fleet(config).lake).rows()
    if as_json:
        print_json([_to_json(row) | {"state": correction_status(row, now)} for row in rows])
        return
    for row in rows:
        console.print(_format_row(row, now), markup=False, soft_wrap=True)


def withdraw_correction(
    correction_id: str, author: str, config: Path, location: str | None, as_json: bool
) -> None:
    """Withdraw a correction. Raises: InputError if there is no such correction in effect; TableStoreError."""
    store = CorrectionStore(location or load_fleet(config).lake)
    is_withdrawn = store.withdraw(correction_id, datetime.now(UTC), author)
    if not is_withdrawn:
        raise InputError(f"no correction {correction_id} is in effect; see fleetgauge correct list")
    console.print(f"correction {correction_id} is withdrawn", markup=False)
    if as_json:
        print_json({"correction_id": correction_id, "withdrawn_by": author})


def _describe_fleet(fleet: Fleet) -> CorrectableFleet:
    return CorrectableFleet(
        segments={cluster.id: cluster.segments for cluster in fleet.clusters},
        zone=fleet.week.zone,
        lifetimes={cluster.id: (cluster.since, cluster.until) for cluster in fleet.clusters},
    )


def _build_scope(
    fleet: Fleet, config: Path, cluster_id: str | None, broker_id: int | None, segment: str | None
) -> TableRow:
    if cluster_id is not None and segment is None:
        cluster = require_cluster(fleet, config, cluster_id)
        scope = "cluster" if broker_id is None else "broker"
        return {"scope": scope, "cluster_id": cluster.id, "broker_id": broker_id}
    if cluster_id is not None or segment is None:
        raise InputError("give either --cluster, with or without --broker, or --segment")
    name, _, value = segment.partition("=")
    if broker_id is not None or not value:
        raise InputError("--segment is NAME=VALUE, such as region=eu-west-1, and excludes --broker")
    if not any((name, value) in cluster.segments for cluster in fleet.clusters):
        raise InputError(f"{config}: no cluster is in segment {segment}")
    return {"scope": "segment", "segment": name, "segment_value": value}


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
