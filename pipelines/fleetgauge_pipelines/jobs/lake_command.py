"""What the commands of `fleetgauge lake` do. Spark is imported only by those that change tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table as TextTable

from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.lake.delta_table import DELTA_ERRORS, describe_table_error, ensure_usable_path
from fleetgauge_core.lake.expiry import RetentionPeriods, first_retained_days
from fleetgauge_core.lake.lease import Lease, hold_lease
from fleetgauge_core.lake.table_repair import RepairOutcome, TableRepair, repair_table
from fleetgauge_core.lake.table_snapshot import TableSnapshot, read_snapshot
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console, print_table
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process
from fleetgauge_core.slo.retention import last_closed_day
from fleetgauge_core.tables import ALL_TABLES, PIPELINE_TABLES, Table, TableOwner
from fleetgauge_pipelines.jobs.lake_session import (
    SHUTDOWN_DEADLINE_S,
    open_lake_for_reading,
    open_lake_for_writing,
)
from fleetgauge_pipelines.jobs.progress import ReportProgress, show_progress
from fleetgauge_pipelines.jobs.settings import make_week_calendar

if TYPE_CHECKING:
    from fleetgauge_pipelines.io.lake import Lake


def show_tables(
    config: Path,
    location: str | None,
    samples_days: int,
    minutes_days: int,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Print for each table its size, its number of files, and what has expired."""
    fleet = load_fleet(config)
    where = location or fleet.lake
    retention, snapshots = _retention(samples_days, minutes_days), _read_snapshots(where)
    first_kept = _find_first_kept_days(fleet, where, clock, retention)
    lines = [_status(table, snapshot, first_kept.get(table)) for table, snapshot in snapshots.items()]
    _print_lines(lines, as_json)


def compact_tables(
    config: Path, location: str | None, only_writer: bool, clock: datetime | None, as_json: bool
) -> None:
    """Compact the small files of closed days, then remove files that no recent version refers to."""
    where = location or load_fleet(config).lake
    before, last = _read_snapshots(where), last_closed_day(clock or datetime.now(UTC))
    parts = {table: before[table].days_to_compact(last) for table in PIPELINE_TABLES if before[table].files}
    with _change_lake(where, only_writer) as (writable, advance):
        from fleetgauge_pipelines.jobs import table_maintenance

        table_maintenance.compact_tables(writable, parts, advance)
    after = _read_snapshots(where)
    lines = [
        {
            "table": table.path,
            "files_before": len(before[table].files),
            "files_after": len(after[table].files),
        }
        for table in parts
    ]
    _print_lines(lines, as_json)


def expire_days(
    config: Path,
    location: str | None,
    samples_days: int,
    minutes_days: int,
    clock: datetime | None,
    dry_run: bool,
    only_writer: bool,
    as_json: bool,
) -> None:
    """Remove the expired days of samples and minutes, or with ``dry_run`` print them."""
    fleet = load_fleet(config)
    where = location or fleet.lake
    retention, snapshots = _retention(samples_days, minutes_days), _read_snapshots(where)
    first_kept = _find_first_kept_days(fleet, where, clock, retention)
    first_kept = {table: day for table, day in first_kept.items() if snapshots[table].version is not None}
    expired = {table: snapshots[table].before_day(day) for table, day in first_kept.items()}
    if not dry_run and any(snapshot.files for snapshot in expired.values()):
        with _change_lake(where, only_writer) as (writable, advance):
            from fleetgauge_pipelines.jobs import table_maintenance

            table_maintenance.expire_days(writable, first_kept, advance)
    lines = [
        {"table": table.path, "kept_from": str(first_kept[table]), **_size(snapshot)}
        for table, snapshot in expired.items()
    ]
    _print_lines(lines, as_json)


def repair_tables(
    config: Path, location: str | None, accept_loss: bool, dry_run: bool, only_writer: bool, as_json: bool
) -> None:
    """Repair damaged tables, and exit with 1 if one stays damaged."""
    where = location or load_fleet(config).lake
    ensure_usable_path(where)
    if not (Path(where).is_dir() or "://" in where):
        raise InputError(f"{where}: no lake found; name its location with --config or --lake")
    planned = _repair_tables(where, accept_loss, dry_run=True)
    if all(repair.outcome is RepairOutcome.WHOLE for repair in planned) and not _has_tables(where):
        raise InputError(f"{where}: no lake found; name its location with --config or --lake")
    repairs = planned if dry_run else _carry_out(where, planned, accept_loss, only_writer)
    _print_lines(
        [
            {"table": repair.table.path, "outcome": repair.outcome.value, "detail": repair.detail}
            for repair in repairs
        ],
        as_json,
    )
    if any(repair.outcome is RepairOutcome.DAMAGED for repair in repairs):
        raise SystemExit(1)


def _repair_tables(where: str, accept_loss: bool, dry_run: bool) -> list[TableRepair]:
    """Repair each table; one that cannot be reached is reported, and the others are repaired."""
    repairs = []
    for table in ALL_TABLES:
        try:
            repairs.append(repair_table(where, table, accepts_loss=accept_loss, dry_run=dry_run))
        except DELTA_ERRORS as error:
            repairs.append(TableRepair(table, RepairOutcome.DAMAGED, describe_table_error(error)))
    return repairs


def _carry_out(
    where: str, planned: Sequence[TableRepair], accept_loss: bool, only_writer: bool
) -> list[TableRepair]:
    lost = {repair.table.owner for repair in planned if repair.outcome is RepairOutcome.LOST}
    with hold_lease(where, "fleetgauge lake repair", console.print, is_only_writer=only_writer) as lease:
        if TableOwner.PIPELINE in lost:
            # Before the repair: after it, nothing would show that rows have to be computed again.
            _read_topics_again(where, lease)
        return _repair_tables(where, accept_loss, dry_run=False)


def _has_tables(where: str) -> bool:
    return any(snapshot.version is not None for snapshot in _read_snapshots(where).values())


def _read_topics_again(where: str, lease: Lease) -> None:
    """Let the stream compute the lost rows from the records that its topics still hold."""
    with open_lake_for_reading(where) as (spark, lake):
        from fleetgauge_pipelines.io.stream_checkpoint import StreamCheckpoint

        checkpoint = StreamCheckpoint(spark, lake.with_lease(lease))
        checkpoint.open()
        if checkpoint.begin_again(datetime.now(UTC)):
            console.print("`fleetgauge stream` will read all records again that its topics hold")
    console.print("`fleetgauge backfill --again` brings rows back whose records are in files")


def _retention(samples_days: int, minutes_days: int) -> RetentionPeriods:
    if minutes_days < samples_days:
        raise InputError(
            f"--minutes-days {minutes_days}: minutes are computed from samples, so keep them at least as "
            f"long, {samples_days} days (--samples-days)"
        )
    return RetentionPeriods(timedelta(days=samples_days), timedelta(days=minutes_days))


def _find_first_kept_days(
    fleet: Fleet, where: str, clock: datetime | None, retention: RetentionPeriods
) -> dict[Table, date]:
    clusters = {cluster.id for cluster in fleet.clusters}
    try:
        return first_retained_days(
            where, make_week_calendar(fleet), clusters, clock or datetime.now(UTC), retention
        )
    except DELTA_ERRORS as error:
        raise InputError(f"{where}: {describe_table_error(error)}") from error


def _read_snapshots(where: str) -> dict[Table, TableSnapshot]:
    snapshots = {}
    for table in ALL_TABLES:
        try:
            snapshots[table] = read_snapshot(where, table)
        except DELTA_ERRORS as error:
            raise InputError(f"{where}/{table.path}: {describe_table_error(error)}") from error
    if all(snapshot.version is None for snapshot in snapshots.values()):
        raise InputError(f"{where}: no lake found; name its location with --config or --lake")
    return snapshots


def _status(table: Table, snapshot: TableSnapshot, first_kept: date | None) -> dict[str, Any]:
    first, last = (str(snapshot.days[end]) if snapshot.days else None for end in (0, -1))
    return {
        "table": table.path,
        "version": snapshot.version,
        "rows": snapshot.rows,
        "files": len(snapshot.files),
        "small_files": snapshot.small_files,
        "mb": _mb(snapshot),
        "first_day": first,
        "last_day": last,
        "expires": _size(snapshot.before_day(first_kept)) if first_kept else None,
    }


def _size(snapshot: TableSnapshot) -> dict[str, Any]:
    return {"days": len(snapshot.days), "files": len(snapshot.files), "mb": _mb(snapshot)}


def _mb(snapshot: TableSnapshot) -> float:
    return round(snapshot.bytes / 1e6, 1)


@contextmanager
def _change_lake(where: str, only_writer: bool) -> Iterator[tuple["Lake", ReportProgress]]:
    """Yield the lake and a progress function; an interruption ends the command between two steps."""
    with (
        supervise_process(SHUTDOWN_DEADLINE_S) as shutdown,
        open_lake_for_writing(where, only_writer) as (_, writable),
    ):
        try:
            with request_shutdown_on_error(shutdown), show_progress(shutdown) as advance:
                yield writable, advance
        except KeyboardInterrupt:
            console.print("interrupted; completed steps are kept: run the same command again to do the rest")
            raise SystemExit(130) from None


def _print_lines(lines: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(list(lines))
        return
    text_table = TextTable(box=None, pad_edge=False)
    for name in lines[0]:
        text_table.add_column(name, justify="left" if name == "table" else "right")
    for line in lines:
        text_table.add_row(*(_format_cell(value) for value in line.values()))
    print_table(console, text_table)


def _format_cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value['days']} days, {value['mb']:,} MB" if value["days"] else "nothing"
    return "" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
