"""`fleetgauge lake`. Spark is imported when something is changed, not before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table as Columns

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.delta_table import BROKEN, reason
from fleetgauge_core.lake.expiry import Keeping, first_kept_days
from fleetgauge_core.lake.table_files import Contents, contents
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_core.runtime.shutdown import stopping_on_signals
from fleetgauge_core.slo.retention import MINUTES_KEPT, SAMPLES_KEPT, last_closed_day
from fleetgauge_core.tables import ALL, OF_THE_PIPELINE, Table
from fleetgauge_pipelines.jobs.cli import (
    clock_option,
    config_option,
    fleet_of,
    json_option,
    lake_option,
    now_or,
    writing,
)
from fleetgauge_pipelines.jobs.progress import Advance, bars
from fleetgauge_pipelines.jobs.settings import calendar

if TYPE_CHECKING:
    from fleetgauge_pipelines.io.lake import Lake

_samples_days = click.option(
    "--samples-days",
    type=click.IntRange(min=1),
    default=SAMPLES_KEPT.days,
    show_default=True,
    help="How long bronze, the samples, is kept.",
)
_minutes_days = click.option(
    "--minutes-days",
    type=click.IntRange(min=1),
    default=MINUTES_KEPT.days,
    show_default=True,
    help="How long silver, the minutes, is kept.",
)


@click.group(epilog="Example: fleetgauge lake status --config fleet.yaml")
def lake() -> None:
    """See what a lake's tables take, put small files together, remove old days."""


@lake.command(epilog="Example: fleetgauge lake status --config fleet.yaml --json")
@config_option
@lake_option
@_samples_days
@_minutes_days
@clock_option
@json_option
def status(
    config: Path,
    location: str | None,
    samples_days: int,
    minutes_days: int,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Say of each table how large it is, in how many files, and what `expire` would remove."""
    fleet = fleet_of(config)
    where = location or fleet.lake
    keeping, found = _keeping(samples_days, minutes_days), _tables(where)
    kept = _first_kept_days(fleet, where, clock, keeping)
    _say([_status(table, one, kept.get(table)) for table, one in found.items()], as_json)


@lake.command(epilog="Example: fleetgauge lake compact --config fleet.yaml")
@config_option
@lake_option
@clock_option
@json_option
def compact(config: Path, location: str | None, clock: datetime | None, as_json: bool) -> None:
    """Put the small files of closed days together, then remove those that no recent version needs.

    The pipeline must not run meanwhile. Interrupted, it goes on where it was.
    """
    where = location or fleet_of(config).lake
    before, last = _tables(where), last_closed_day(now_or(clock))
    portions = {table: before[table].scattered(last) for table in OF_THE_PIPELINE if before[table].files}
    with _changing(where) as (writable, advance):
        from fleetgauge_pipelines.jobs import table_maintenance

        table_maintenance.compact(writable, portions, advance)
    after = _tables(where)
    lines = [
        {
            "table": table.path,
            "files_before": len(before[table].files),
            "files_after": len(after[table].files),
        }
        for table in portions
    ]
    _say(lines, as_json)


@lake.command(epilog="Example: fleetgauge lake expire --config fleet.yaml --dry-run")
@config_option
@lake_option
@_samples_days
@_minutes_days
@clock_option
@click.option("--dry-run", is_flag=True, help="Say what would go, and leave it.")
@json_option
def expire(
    config: Path,
    location: str | None,
    samples_days: int,
    minutes_days: int,
    clock: datetime | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove old days of samples and minutes for ever; weeks and their evidence stay.

    No day of a week that is open or held back goes. The pipeline must not run meanwhile.
    """
    fleet = fleet_of(config)
    where = location or fleet.lake
    keeping, found = _keeping(samples_days, minutes_days), _tables(where)
    kept = _first_kept_days(fleet, where, clock, keeping)
    kept = {table: day for table, day in kept.items() if found[table].version is not None}
    going = {table: found[table].before(day) for table, day in kept.items()}
    if not dry_run and any(found.files for found in going.values()):
        with _changing(where) as (writable, advance):
            from fleetgauge_pipelines.jobs import table_maintenance

            table_maintenance.expire(writable, kept, advance)
    lines = [
        {"table": table.path, "kept_from": str(kept[table]), **_size(found)} for table, found in going.items()
    ]
    _say(lines, as_json)


def _keeping(samples_days: int, minutes_days: int) -> Keeping:
    if minutes_days < samples_days:
        raise InputError(
            f"--minutes-days {minutes_days}: minutes are kept at least as long as the samples that they are "
            f"made of, {samples_days} days (--samples-days)"
        )
    return Keeping(timedelta(days=samples_days), timedelta(days=minutes_days))


def _first_kept_days(fleet: Fleet, where: str, clock: datetime | None, keeping: Keeping) -> dict[Table, date]:
    clusters = {cluster.id for cluster in fleet.clusters}
    try:
        return first_kept_days(where, calendar(fleet), clusters, now_or(clock), keeping)
    except BROKEN as error:
        raise InputError(f"{where}: {reason(error)}") from error


def _tables(where: str) -> dict[Table, Contents]:
    """What is there of the tables."""
    found = {}
    for table in ALL:
        try:
            found[table] = contents(where, table)
        except BROKEN as error:
            raise InputError(f"{where}/{table.path}: {reason(error)}") from error
    if all(one.version is None for one in found.values()):
        raise InputError(f"{where}: there is no lake; --config or --lake says where it is")
    return found


def _status(table: Table, found: Contents, first_kept: date | None) -> dict[str, Any]:
    first, last = (str(found.days[end]) if found.days else None for end in (0, -1))
    return {
        "table": table.path,
        "version": found.version,
        "rows": found.rows,
        "files": len(found.files),
        "small_files": found.small_files,
        "mb": _mb(found),
        "first_day": first,
        "last_day": last,
        "expires": _size(found.before(first_kept)) if first_kept else None,
    }


def _size(found: Contents) -> dict[str, Any]:
    return {"days": len(found.days), "files": len(found.files), "mb": _mb(found)}


def _mb(found: Contents) -> float:
    return round(found.bytes / 1e6, 1)


@contextmanager
def _changing(where: str) -> Iterator[tuple["Lake", Advance]]:
    """The lake for writing; what is done when it is interrupted stays done."""
    with writing(where) as (_, writable):
        stopping = stopping_on_signals()
        try:
            with bars(stopping) as advance:
                yield writable, advance
        except KeyboardInterrupt:
            console.print("ended; what is done stays done, and the same command does the rest")
            raise SystemExit(130) from None


def _say(lines: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(list(lines))
        return
    shown = Columns(box=None, pad_edge=False)
    for name in lines[0]:
        shown.add_column(name, no_wrap=name == "table", justify="left" if name == "table" else "right")
    for line in lines:
        shown.add_row(*(_cell(value) for value in line.values()))
    console.print(shown)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value['days']} days, {value['mb']:,} MB" if value["days"] else "nothing"
    return "" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
