"""What `fleetgauge backfill` does. Spark is imported after the fleet file was read."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.change_document import ChangeDocumentError
from fleetgauge_core.fleet import Fleet, load_fleet, require_telemetry
from fleetgauge_core.kafka import explain_telemetry_errors
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process
from fleetgauge_pipelines.jobs.batch_report import COUNT_NAMES, count_batch, print_batch
from fleetgauge_pipelines.jobs.lake_session import SHUTDOWN_DEADLINE_S, open_lake_for_pipeline

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.backfill import BackfillResult, RecordSource, ReportPiece
    from fleetgauge_pipelines.jobs.batch import BatchResult

#: 128 + SIGINT, as a shell reports it.
_EXIT_INTERRUPTED = 130


def fill_lake(
    folder: Path | None,
    topic: str | None,
    change_file: Path | None,
    again: bool,
    config: Path,
    location: str | None,
    only_writer: bool,
    clock: datetime | None,
    as_json: bool,
) -> None:
    """Write the records of a folder or of a topic, and the changes of a file, to the lake.

    Raises: InputError if none or both of folder and topic are given, or if one does not exist.
    """
    if folder is not None and topic is not None:
        raise InputError("give either --from DIR or --topic NAME")
    if folder is None and topic is None and change_file is None:
        raise InputError("give --from DIR or --topic NAME, --changes FILE, or both")
    fleet = load_fleet(config)
    now = clock or datetime.now(UTC)
    changes = () if change_file is None else _read_changes(change_file, fleet, now)
    with (
        supervise_process(SHUTDOWN_DEADLINE_S) as shutdown,
        open_lake_for_pipeline(location or fleet.lake, only_writer) as (spark, lake),
        request_shutdown_on_error(shutdown),
    ):
        from fleetgauge_pipelines.jobs.backfill import run_backfill

        records = _records(fleet, config, folder, topic)
        with _show_pieces() as advance:
            result = run_backfill(spark, lake, fleet, records, changes, now, again, shutdown, advance)
    if result.remaining:
        _print_where_it_stopped(result)
        raise SystemExit(_EXIT_INTERRUPTED)
    if as_json:
        print_json(_add_up(result))


def _read_changes(path: Path, fleet: Fleet, now: datetime) -> tuple[ClusterChange, ...]:
    from fleetgauge_pipelines.jobs.changes import read_change_file

    try:
        return read_change_file(path, fleet, now)
    except ChangeDocumentError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _records(fleet: Fleet, config: Path, folder: Path | None, topic: str | None) -> "RecordSource":
    from fleetgauge_pipelines.jobs.backfill import open_no_records, open_record_folder, open_record_topic

    try:
        if folder is not None:
            return open_record_folder(folder)
        if topic is None:
            return open_no_records()
        with explain_telemetry_errors():
            return open_record_topic(require_telemetry(fleet, config), topic)
    except (FileNotFoundError, LookupError) as error:
        raise InputError(error.args[0]) from error


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
