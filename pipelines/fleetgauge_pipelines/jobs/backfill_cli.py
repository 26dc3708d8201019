"""The command `fleetgauge backfill`. Spark is imported when it runs, so that `--help` stays fast."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.fleet.command_line import load_fleet_or_exit, telemetry_or_exit
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_core.runtime.options import clock_option, config_option, lake_option
from fleetgauge_core.runtime.shutdown import install_shutdown_handlers
from fleetgauge_pipelines.jobs.cli import (
    COUNT_NAMES,
    count_batch,
    counts_json_option,
    open_lake_for_writing,
    print_batch,
    resolve_clock,
)

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.backfill import BackfillResult, RecordSource, ReportPiece
    from fleetgauge_pipelines.jobs.batch import BatchResult

#: 128 + SIGINT, as a shell reports it.
_EXIT_INTERRUPTED = 130


@click.command(epilog="Example: fleetgauge backfill --from ./records --lake ./lake --config fleet.yaml")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of *.avro and *.parquet files with ProbeMinute records.",
)
@click.option(
    "--topic", help="Topic of the telemetry cluster to read, instead of files: all records that it holds now."
)
@click.option(
    "--again",
    is_flag=True,
    help="Also process files or offsets that were processed before; no table changes.",
)
@config_option
@lake_option
@clock_option
@counts_json_option
def backfill(
    folder: Path | None,
    topic: str | None,
    again: bool,
    config: Path,
    location: str | None,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Write probe records from files, or all records of a topic, to the lake, one piece at a time.

    Run it again to continue a backfill that was stopped. Reading files needs no Kafka broker.
    """
    if (folder is None) == (topic is None):
        raise InputError("give either --from DIR or --topic NAME")
    fleet = load_fleet_or_exit(config)
    with open_lake_for_writing(location or fleet.lake) as (spark, lake):
        from fleetgauge_pipelines.jobs.backfill import run_backfill

        records = _records(fleet, config, folder, topic)
        # Installed after the session, because PySpark replaces the SIGINT handler as it starts.
        shutdown = install_shutdown_handlers()
        with _show_pieces() as advance:
            result = run_backfill(spark, lake, fleet, records, resolve_clock(clock), again, shutdown, advance)
    if result.remaining:
        _print_where_it_stopped(result)
        raise SystemExit(_EXIT_INTERRUPTED)
    if as_json:
        print_json(_add_up(result))


def _records(fleet: Fleet, config: Path, folder: Path | None, topic: str | None) -> "RecordSource":
    from fleetgauge_pipelines.jobs.backfill import open_record_folder, open_record_topic

    try:
        if folder is not None:
            return open_record_folder(folder)
        return open_record_topic(telemetry_or_exit(fleet, config), topic or "")
    except (FileNotFoundError, LookupError) as error:
        raise InputError(error.args[0]) from error
    except KafkaUnavailableError as error:
        raise InputError(f"cannot read from the telemetry cluster: {error}") from error


@contextmanager
def _show_pieces() -> Iterator["ReportPiece"]:
    # A progress bar over pieces with the number of records, and a printed line for each piece.
    record_count = TextColumn("{task.fields[records]} records")
    columns = (TextColumn("pieces"), BarColumn(), MofNCompleteColumn(), record_count, TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("pieces", total=None, records=0)
        records = 0

        def advance(done: int, total: int, batch: "BatchResult | None") -> None:
            nonlocal records
            if batch is not None:
                print_batch(done, batch)
                records += batch.ingested.received
            progress.update(task, completed=done, total=total, records=records)

        yield advance


def _add_up(result: "BackfillResult") -> dict[str, int]:
    totals = Counter(dict.fromkeys(COUNT_NAMES, 0))
    for batch in result.batches:
        totals.update(count_batch(batch))
    return totals | {
        "gold_rows_changed": result.gold_rows_changed,
        "pieces": len(result.batches),
        "pieces_skipped": result.skipped,
    }


def _print_where_it_stopped(result: "BackfillResult") -> None:
    done = len(result.batches) + result.skipped
    console.print(
        f"stopped after {done} of {done + result.remaining} pieces; run the same command again to continue",
        markup=False,
        soft_wrap=True,
    )
