"""What the commands of `fleetgauge quarantine` do. Spark is imported only to replay rows."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.lake.quarantine_view import (
    QuarantineFilter,
    decode_readable_fields,
    read_quarantined_record,
    summarize_quarantine,
)
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.tables import QUARANTINE
from fleetgauge_pipelines.jobs.batch_report import COUNT_NAMES, count_batch, print_batch
from fleetgauge_pipelines.jobs.lake_session import open_lake_for_pipeline

_HEX_BYTES = 64


def list_reasons(
    reason: str | None, since: datetime | None, config: Path, location: str | None, as_json: bool
) -> None:
    """Print how many rows each reason has, when they were ingested, and the source of one of them."""
    selection = QuarantineFilter(reason=reason, since=_utc(since))
    groups = summarize_quarantine(_location(location, config), selection)
    for group in groups:
        _print(
            f"{group.reason}: {group.rows} rows, {_time(group.first_ingested_at)} to "
            f"{_time(group.last_ingested_at)}, for example {group.example}"
        )
    if not groups:
        _print("no matching row in quarantine")
    if as_json:
        print_json([_format_times(asdict(group)) for group in groups])


def show_record(source: str, config: Path, location: str | None, as_json: bool) -> None:
    """Print one row. Raises: InputError when the quarantine has no row with this source."""
    where = _location(location, config)
    row = read_quarantined_record(where, source)
    if row is None:
        raise _unknown(source, where)
    fields, unreadable = decode_readable_fields(row.value or b"")
    shown = {
        "source": row.source,
        "reason": row.reason,
        "detail": row.detail,
        "ingested_at": _time(row.ingested_at),
        "size": None if row.value is None else len(row.value),
        "hex": (row.value or b"")[:_HEX_BYTES].hex(),
        "fields": {name: _format_field(name, value) for name, value in fields.items()},
        "unreadable": unreadable,
    }
    _print_row(shown)
    if as_json:
        print_json(shown)


def replay_records(
    reason: str | None,
    source: str | None,
    since: datetime | None,
    accepts_unlikely: bool,
    config: Path,
    location: str | None,
    only_writer: bool,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Process rows again after their cause was fixed, or after a person accepted them.

    Raises: InputError when there is no such row or no table.
    """
    fleet = load_fleet(config)
    where = location or fleet.lake
    if "://" not in where and not Path(where, QUARANTINE.path).is_dir():
        raise InputError(f"{where}: no table {QUARANTINE.path} found; name the lake with --lake")
    selection = QuarantineFilter(reason, source, _utc(since))
    with open_lake_for_pipeline(where, only_writer) as (spark, lake):
        from fleetgauge_pipelines.jobs.quarantine import run_replay

        with console.status("replaying rows of quarantine"):
            now = clock or datetime.now(UTC)
            outcome = run_replay(spark, lake, fleet, selection, now, accepts_unlikely)
    if outcome is None and source is not None:
        raise _unknown(source, where)
    counts = dict.fromkeys((*COUNT_NAMES, "moved", "still_quarantined"), 0)
    if outcome is not None:
        print_batch(0, outcome)
        counts = count_batch(outcome)
        counts |= {"moved": outcome.released, "still_quarantined": outcome.ingested.quarantined}
    _print(f"{counts['moved']} rows left quarantine, {counts['still_quarantined']} of the replayed rows stay")
    if as_json:
        print_json(counts)


def _unknown(source: str, lake: str) -> InputError:
    return InputError(
        f"{lake}: no matching row with source {source!r} in quarantine; see `fleetgauge quarantine list`"
    )


def _location(location: str | None, config: Path) -> str:
    return location or load_fleet(config).lake


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _format_times(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _time(value) if isinstance(value, datetime) else value for name, value in row.items()}


def _format_field(name: str, value: Any) -> Any:
    # Timestamps are milliseconds. A damaged record may hold a value that is no valid time; it is shown as it
    # is.
    if name not in ("minute", "emitted_at"):
        return value
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return value


def _print_row(shown: Mapping[str, Any]) -> None:
    for name, value in shown.items():
        if name == "fields":
            for field, content in value.items():
                _print(f"  {field}: {_abbreviate(content)}")
        else:
            _print(f"{name}: {'-' if value in (None, '') else value}")


def _abbreviate(value: Any) -> str:
    if isinstance(value, list) and len(value) > 10:
        return f"{len(value)} values, {', '.join(map(str, value[:3]))}, ..., {value[-1]}"
    return str(value)


def _print(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
