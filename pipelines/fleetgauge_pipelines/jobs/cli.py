"""The commands `fleetgauge stream` and `fleetgauge run`, and what all pipeline commands share.

Spark is imported when a command runs, so that `--help` stays fast.
"""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetgauge_core.fleet.command_line import load_fleet_or_exit, telemetry_or_exit
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.lease import LeaseError, hold_lease
from fleetgauge_core.runtime.cli import (
    InputError,
    ListenAddress,
    console,
    print_json,
)
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.options import config_option, json_option, lake_option, listen_option
from fleetgauge_core.runtime.shutdown import install_shutdown_handlers
from fleetgauge_pipelines.jobs.metrics import StreamMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fleetgauge_pipelines.io.lake import Lake
    from fleetgauge_pipelines.jobs.batch import BatchResult

#: A process without a heartbeat for this long is not alive. A normal batch takes seconds; catching up after
#: an outage, or the first start, which downloads the jars, takes minutes.
_MAX_HEARTBEAT_AGE_S = 15 * 60

counts_json_option = json_option("Print the counts on stdout as JSON.")


@click.command(epilog="Example: fleetgauge stream --config fleet.yaml")
@config_option
@lake_option
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    help="Seconds between the starts of two micro-batches.",
)
@listen_option
@counts_json_option
def stream(
    config: Path, location: str | None, every_s: float, listen: ListenAddress | None, as_json: bool
) -> None:
    """Write probe records from the telemetry topics to the lake continuously, until stopped."""
    _process_topics(config, location, every_s, listen, as_json)


@click.command(epilog="Example: fleetgauge run --config fleet.yaml --json")
@config_option
@lake_option
@counts_json_option
def run(config: Path, location: str | None, as_json: bool) -> None:
    """Write the probe records that the telemetry topics hold now to the lake, then exit."""
    _process_topics(config, location, None, None, as_json)


def _process_topics(
    config: Path, location: str | None, every_s: float | None, listen: ListenAddress | None, as_json: bool
) -> None:
    fleet = load_fleet_or_exit(config)
    telemetry = telemetry_or_exit(fleet, config)
    health = ProcessHealth("stream", _MAX_HEARTBEAT_AGE_S)
    metrics = StreamMetrics(health.registry)
    totals = Counter(dict.fromkeys(COUNT_NAMES, 0))

    def report_batch(batch_id: int, result: "BatchResult") -> None:
        print_batch(batch_id, result)
        totals.update(count_batch(result))
        metrics.record_batch(result, _now())
        health.record_heartbeat()
        health.mark_ready()

    with serve_health(health, listen), open_lake_for_writing(location or fleet.lake) as (spark, lake):
        from fleetgauge_pipelines.jobs.stream import StreamTrigger, run_stream

        # Installed after the session: PySpark replaces the SIGINT handler as it starts, and its own handler
        # ends the process with a traceback.
        shutdown = install_shutdown_handlers()
        try:
            run_stream(
                spark,
                lake,
                fleet,
                telemetry,
                StreamTrigger(every_s),
                _now,
                report_batch,
                health.record_heartbeat,
                shutdown,
            )
        except KafkaUnavailableError as error:
            raise InputError(f"cannot read from the telemetry cluster: {error}") from error
    if as_json:
        print_json(totals)


def resolve_clock(clock: datetime | None) -> datetime:
    """Return the time that `--clock` gives, or the current time, in UTC."""
    return clock.replace(tzinfo=UTC) if clock else _now()


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def open_lake_for_writing(location: str) -> Iterator[tuple["SparkSession", "Lake"]]:
    """Yield a Spark session and the lake while holding the lake's writer lease.

    Raises: InputError when another process holds the lease, or Spark, Java or the jars are missing.
    """
    try:
        with hold_lease(location), open_lake_for_reading(location) as session_and_lake:
            yield session_and_lake
    except LeaseError as error:
        raise InputError(str(error)) from error


@contextmanager
def open_lake_for_reading(location: str) -> Iterator[tuple["SparkSession", "Lake"]]:
    """Yield a Spark session and the lake without its lease: another process may write to it meanwhile.

    Raises: InputError when Spark, Java or the jars are missing.
    """
    try:
        from fleetgauge_pipelines.io.errors import SetupError
        from fleetgauge_pipelines.io.lake import Lake
        from fleetgauge_pipelines.io.session import open_session
    except ModuleNotFoundError as error:
        raise _missing_package(error) from error
    try:
        sigint_handler = signal.getsignal(signal.SIGINT)
        spark = open_session("fleetgauge", console.print)
        # PySpark's own handler would abort whichever call to the JVM is in progress.
        signal.signal(signal.SIGINT, sigint_handler)
        try:
            yield spark, Lake(spark, location)
        finally:
            spark.stop()
    except SetupError as error:
        raise InputError(str(error)) from error


def _missing_package(error: ModuleNotFoundError) -> InputError:
    return InputError(f"needs {error.name}: pip install 'fleetgauge[pipelines]'")


def print_batch(batch_id: int, result: "BatchResult") -> None:
    """Print one line about a batch, and a second line when an expectation failed."""
    ingested = result.ingested
    failed = [verdict.expectation for verdict in result.verdicts if not verdict.success]
    console.print(
        f"batch {batch_id}: {ingested.received} records ({ingested.stored} new, "
        f"{ingested.replayed} replayed, {ingested.quarantined} quarantined), "
        f"{result.silver_rows_changed} silver and {result.gold_rows_changed} gold rows changed, "
        f"{result.seconds:.1f} s",
        soft_wrap=True,
    )
    if failed:
        text = _describe_gate_failure(failed, result)
        console.print(f"batch {batch_id}: {text}", style="red", soft_wrap=True)


def _describe_gate_failure(expectations: list[str], result: "BatchResult") -> str:
    failure = f"the quality gate failed: {', '.join(expectations)}"
    weeks = ", ".join(str(week) for week in result.weeks_held_back)
    return (
        f"{failure}; these weeks are held back and keep their last good values: {weeks}" if weeks else failure
    )


#: The keys of ``count_batch``, in order.
COUNT_NAMES = (
    "batches",
    "received",
    "stored",
    "replayed",
    "quarantined",
    "silver_rows_changed",
    "gold_rows_changed",
    "quality_failures",
)


def count_batch(result: "BatchResult") -> dict[str, int]:
    """Return what a batch did as numbers that add up over batches."""
    ingested = result.ingested
    return {
        "batches": 1,
        "received": ingested.received,
        "stored": ingested.stored,
        "replayed": ingested.replayed,
        "quarantined": ingested.quarantined,
        "silver_rows_changed": result.silver_rows_changed,
        "gold_rows_changed": result.gold_rows_changed,
        "quality_failures": sum(not verdict.success for verdict in result.verdicts),
    }
