"""`fleetgauge quarantine`. Spark is imported when rows are replayed, not to look at them."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.lake.quarantine_view import (
    QuarantineError,
    Selection,
    groups,
    held,
    readable_fields,
)
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_core.tables import QUARANTINE, REASONS
from fleetgauge_pipelines.jobs.cli import (
    COUNTED,
    clock_option,
    config_option,
    counts_of,
    fleet_of,
    json_option,
    lake_option,
    narrate_batch,
    now_or,
    writing,
)

_HEX_BYTES = 64

_reason = click.option(
    "--reason",
    type=click.Choice(REASONS),
    metavar="REASON",
    help=f"Only rows of this reason: {', '.join(REASONS)}.",
)
_since = click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]),
    metavar="TIME",
    help="Only rows that came then or later (UTC): 2026-03-02 or 2026-03-02T06:30:00Z.",
)
_looking_json = click.option("--json", "as_json", is_flag=True, help="Say it on stdout as JSON.")


@click.group(epilog="Example: fleetgauge quarantine list --lake ./lake")
def quarantine() -> None:
    """Records that broke the contract: look at them and, after a mend, take them in."""


@quarantine.command("list", epilog="Example: fleetgauge quarantine list --since 2026-03-02")
@_reason
@_since
@config_option
@lake_option
@_looking_json
def list_(
    reason: str | None, since: datetime | None, config: Path, location: str | None, as_json: bool
) -> None:
    """Say how many rows each reason has, since when, and one of them."""
    try:
        found = groups(_location(location, config), Selection(reason=reason, since=_utc(since)))
    except QuarantineError as error:
        raise InputError(str(error)) from error
    for group in found:
        _say(
            f"{group.reason}: {group.rows} rows, {_time(group.first_ingested_at)} to "
            f"{_time(group.last_ingested_at)}, such as {group.example}"
        )
    if not found:
        _say("no such row in quarantine")
    if as_json:
        print_json([_with_times_as_text(asdict(group)) for group in found])


@quarantine.command(epilog="Example: fleetgauge quarantine show b5rvyvIRQIG5jXJfbDGcDQ/3/1207")
@click.argument("source")
@config_option
@lake_option
@_looking_json
def show(source: str, config: Path, location: str | None, as_json: bool) -> None:
    """Show one row: why it is there, its bytes, and the record in them as far as it can be read."""
    where = _location(location, config)
    try:
        row = held(where, source)
    except QuarantineError as error:
        raise InputError(str(error)) from error
    if row is None:
        raise _unknown(source, where)
    fields, stopped = readable_fields(row.value or b"")
    shown = {
        "source": row.source,
        "reason": row.reason,
        "detail": row.detail,
        "ingested_at": _time(row.ingested_at),
        "size": None if row.value is None else len(row.value),
        "hex": (row.value or b"")[:_HEX_BYTES].hex(),
        "fields": {name: _legible(name, value) for name, value in fields.items()},
        "unreadable": stopped,
    }
    _tell(shown)
    if as_json:
        print_json(shown)


@quarantine.command(epilog="Example: fleetgauge quarantine replay --reason unknown_cluster --json")
@_reason
@click.option("--source", help="Only this row.")
@_since
@config_option
@lake_option
@clock_option
@json_option
def replay(
    reason: str | None,
    source: str | None,
    since: datetime | None,
    config: Path,
    location: str | None,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Take rows once more through the batch, after a mend: a cluster added, a clock set.

    What is good now moves to the tables, however old it is; what is not stays. Stop the stream first.
    """
    fleet = fleet_of(config)
    where = location or fleet.lake
    if "://" not in where and not Path(where, QUARANTINE.path).is_dir():
        raise InputError(f"{where}: no {QUARANTINE.path} there; --lake says where the lake is")
    selection = Selection(reason, source, _utc(since))
    with writing(where) as (spark, lake):
        from fleetgauge_pipelines.jobs.quarantine import run_replay

        with console.status("replaying what is in quarantine"):
            outcome = run_replay(spark, lake, fleet, selection, now_or(clock))
    if outcome is None and source is not None:
        raise _unknown(source, where)
    counts = dict.fromkeys((*COUNTED, "moved", "still_quarantined"), 0)
    if outcome is not None:
        narrate_batch(0, outcome)
        counts = counts_of(outcome)
        counts |= {"moved": outcome.released, "still_quarantined": outcome.ingested.quarantined}
    _say(f"{counts['moved']} rows left quarantine, {counts['still_quarantined']} of those replayed stay")
    if as_json:
        print_json(counts)


def _unknown(source: str, lake: str) -> InputError:
    return InputError(
        f"{lake}: no row {source!r} in quarantine as asked for; `fleetgauge quarantine list` names some"
    )


def _location(location: str | None, config: Path) -> str:
    return location or fleet_of(config).lake


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _with_times_as_text(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _time(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _legible(name: str, value: Any) -> Any:
    """Milliseconds as a time, where there is such a time."""
    if name not in ("minute", "emitted_at"):
        return value
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return value


def _tell(shown: Mapping[str, Any]) -> None:
    for name, value in shown.items():
        if name == "fields":
            for field, content in value.items():
                _say(f"  {field}: {_in_short(content)}")
        else:
            _say(f"{name}: {'-' if value in (None, '') else value}")


def _in_short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 10:
        return f"{len(value)} values, {', '.join(map(str, value[:3]))}, ..., {value[-1]}"
    return str(value)


def _say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
