"""`fleetgauge backfill`. Spark is imported when it runs, not before."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_core.runtime.shutdown import stopping_on_signals
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
    telemetry_of,
    writing,
)

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.backfill import Advance, Backfilled, Records
    from fleetgauge_pipelines.jobs.batch import Outcome

_INTERRUPTED = 130


@click.command(epilog="Example: fleetgauge backfill --from ./records --lake ./lake --config fleet.yaml")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of *.avro and *.parquet files of ProbeMinute.",
)
@click.option("--topic", help="Instead: all that a topic of the telemetry cluster holds now.")
@click.option("--again", is_flag=True, help="Also what the lake remembers to have taken; changes nothing.")
@config_option
@lake_option
@clock_option
@json_option
def backfill(
    folder: Path | None,
    topic: str | None,
    again: bool,
    config: Path,
    location: str | None,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Turn probe records in files, or all of a topic, into tables, piece by piece.

    One that was stopped goes on where it was when it is called again. Files need no broker.
    """
    if (folder is None) == (topic is None):
        raise InputError("say either --from DIR or --topic NAME")
    fleet = fleet_of(config)
    with writing(location or fleet.lake) as (spark, lake):
        from fleetgauge_pipelines.jobs.backfill import run_backfill

        records = _records(fleet, config, folder, topic)
        # Only now: PySpark, as it starts, takes SIGINT for itself.
        stopping = stopping_on_signals()
        with _bar() as advance:
            done = run_backfill(spark, lake, fleet, records, now_or(clock), again, stopping, advance)
    if done.left:
        _say_where_it_ended(done)
        raise SystemExit(_INTERRUPTED)
    if as_json:
        print_json(_summed(done))


def _records(fleet: Fleet, config: Path, folder: Path | None, topic: str | None) -> "Records":
    from fleetgauge_pipelines.jobs.backfill import records_in, records_of

    try:
        if folder is not None:
            return records_in(folder)
        return records_of(telemetry_of(fleet, config), topic or "")
    except (FileNotFoundError, LookupError) as error:
        raise InputError(error.args[0]) from error
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be read: {error}") from error


@contextmanager
def _bar() -> Iterator["Advance"]:
    """Pieces and records, and a line a piece."""
    counted = TextColumn("{task.fields[records]} records")
    look = (TextColumn("pieces"), BarColumn(), MofNCompleteColumn(), counted, TimeElapsedColumn())
    with Progress(*look, console=console) as progress:
        task = progress.add_task("pieces", total=None, records=0)
        records = 0

        def advance(done: int, of: int, outcome: "Outcome | None") -> None:
            nonlocal records
            if outcome is not None:
                narrate_batch(done, outcome)
                records += outcome.ingested.received
            progress.update(task, completed=done, total=of, records=records)

        yield advance


def _summed(done: "Backfilled") -> dict[str, int]:
    totals = Counter(dict.fromkeys(COUNTED, 0))
    for outcome in done.outcomes:
        totals.update(counts_of(outcome))
    return totals | {
        "gold_rows_changed": done.gold_rows_changed,
        "pieces": len(done.outcomes),
        "pieces_skipped": done.skipped,
    }


def _say_where_it_ended(done: "Backfilled") -> None:
    taken = len(done.outcomes) + done.skipped
    console.print(
        f"ended with {taken} of {taken + done.left} pieces taken; the same command goes on from there",
        markup=False,
        soft_wrap=True,
    )
