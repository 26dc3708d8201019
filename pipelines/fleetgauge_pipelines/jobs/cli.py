"""`fleetgauge stream` and `run`, and what commands share. Spark is imported when one runs, not before."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetgauge_core.fleet import (
    Fleet,
    FleetFileError,
    Telemetry,
    load,
)
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import (
    Address,
    InputError,
    console,
    listen_option,
    print_json,
)
from fleetgauge_core.runtime.health_server import Vitals, serving
from fleetgauge_core.runtime.shutdown import stopping_on_signals
from fleetgauge_pipelines.jobs.metrics import StreamMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fleetgauge_pipelines.io.lake import Lake
    from fleetgauge_pipelines.jobs.batch import Outcome

#: A batch takes seconds, one that catches up minutes, and so does a first start with jars to fetch.
_PATIENCE_S = 15 * 60

config_option = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
lake_option = click.option(
    "--lake", "location", help="Where the tables are, instead of the fleet file's `lake`."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Say the counts on stdout as JSON.")
clock_option = click.option(
    "--clock",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    help="Judge what is future and which weeks are closed as of then (UTC), instead of now.",
)


@click.command(epilog="Example: fleetgauge stream --config fleet.yaml")
@config_option
@lake_option
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    help="Seconds from one micro-batch to the next.",
)
@listen_option
@json_option
def stream(config: Path, location: str | None, every_s: float, listen: Address | None, as_json: bool) -> None:
    """Turn probe records into tables continuously, until stopped."""
    _from_topics(config, location, every_s, listen, as_json)


@click.command(epilog="Example: fleetgauge run --config fleet.yaml --json")
@config_option
@lake_option
@json_option
def run(config: Path, location: str | None, as_json: bool) -> None:
    """Turn the probe records that are there now into tables, then end."""
    _from_topics(config, location, None, None, as_json)


def _from_topics(
    config: Path, location: str | None, every_s: float | None, listen: Address | None, as_json: bool
) -> None:
    fleet = fleet_of(config)
    telemetry = telemetry_of(fleet, config)
    vitals = Vitals("stream", _PATIENCE_S)
    metrics = StreamMetrics(vitals.registry)
    totals = Counter(dict.fromkeys(COUNTED, 0))

    def narrate(batch_id: int, outcome: "Outcome") -> None:
        narrate_batch(batch_id, outcome)
        totals.update(counts_of(outcome))
        metrics.batch(outcome, _now())
        vitals.beat()
        vitals.ready()

    with serving(vitals, listen), writing(location or fleet.lake) as (spark, lake):
        from fleetgauge_pipelines.jobs.stream import Pace, run_stream

        # Only now: PySpark, as it starts, takes SIGINT for itself and would break off with a traceback.
        stopping = stopping_on_signals()
        try:
            run_stream(spark, lake, fleet, telemetry, Pace(every_s), _now, narrate, vitals.beat, stopping)
        except KafkaUnavailableError as error:
            raise InputError(f"telemetry cannot be read: {error}") from error
    if as_json:
        print_json(totals)


def now_or(clock: datetime | None) -> datetime:
    """What `--clock` says, or now."""
    return clock.replace(tzinfo=UTC) if clock else _now()


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def writing(location: str) -> Iterator[tuple["SparkSession", "Lake"]]:
    """A session and the lake's lease."""
    try:
        from fleetgauge_core.lake.lease import LeaseError, lease
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    try:
        with lease(location), reading(location) as opened:
            yield opened
    except LeaseError as error:
        raise InputError(str(error)) from error


@contextmanager
def reading(location: str) -> Iterator[tuple["SparkSession", "Lake"]]:
    """A session; others may write the lake meanwhile."""
    try:
        from fleetgauge_pipelines.io.errors import SetupError
        from fleetgauge_pipelines.io.lake import Lake
        from fleetgauge_pipelines.io.session import open_session
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    try:
        interrupted = signal.getsignal(signal.SIGINT)
        spark = open_session("fleetgauge", console.print)
        # Spark's own handler would break off whatever is being asked of the JVM.
        signal.signal(signal.SIGINT, interrupted)
        try:
            yield spark, Lake(spark, location)
        finally:
            spark.stop()
    except SetupError as error:
        raise InputError(str(error)) from error


def _missing(error: ModuleNotFoundError) -> InputError:
    return InputError(f"needs {error.name}: pip install 'fleetgauge[pipelines]'")


def fleet_of(config: Path) -> Fleet:
    """The fleet file. Raises InputError."""
    try:
        return load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error


def telemetry_of(fleet: Fleet, config: Path) -> Telemetry:
    """Where the records are. Raises InputError."""
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the records are")
    return fleet.telemetry


def narrate_batch(batch_id: int, outcome: "Outcome") -> None:
    took = outcome.ingested
    failed = [verdict.expectation for verdict in outcome.verdicts if not verdict.success]
    console.print(
        f"batch {batch_id}: {took.received} records ({took.stored} new, {took.replayed} replayed, "
        f"{took.quarantined} quarantined), {outcome.silver_rows_changed} silver and "
        f"{outcome.gold_rows_changed} gold rows changed, {outcome.seconds:.1f} s",
        soft_wrap=True,
    )
    if failed:
        console.print(f"batch {batch_id}: {_failure(failed, outcome)}", style="red", soft_wrap=True)


def _failure(failed: list[str], outcome: "Outcome") -> str:
    said = f"the quality gate failed: {', '.join(failed)}"
    weeks = ", ".join(str(week) for week in outcome.weeks_held_back)
    return f"{said}; held back, the last good one stays: week of {weeks}" if weeks else said


COUNTED = (
    "batches",
    "received",
    "stored",
    "replayed",
    "quarantined",
    "silver_rows_changed",
    "gold_rows_changed",
    "quality_failures",
)


def counts_of(outcome: "Outcome") -> dict[str, int]:
    took = outcome.ingested
    failures = sum(not verdict.success for verdict in outcome.verdicts)
    changed = (outcome.silver_rows_changed, outcome.gold_rows_changed)
    counts = (1, took.received, took.stored, took.replayed, took.quarantined, *changed, failures)
    return dict(zip(COUNTED, counts, strict=True))
