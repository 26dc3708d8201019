"""What the tests on lakes share: raw frames, and a look at all tables at once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.tables import ALL, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_files import RAW_DDL
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.jobs.backfill import Backfilled, Records, run_backfill
from fleetgauge_pipelines.jobs.batch import Pipeline

#: Topic, partition and offset as the stream would say them.
SOURCE = "topic-id/0/{}"


def raw_frame(spark: SparkSession, values: Sequence[bytes | None], first: int = 0) -> DataFrame:
    """Values as if they lay one after the other in a partition, from offset ``first`` on."""
    rows = [(value, SOURCE.format(at), at, None) for at, value in enumerate(values, first)]
    return dataframe(spark, rows, RAW_DDL)


def opened(spark: SparkSession, folder: Path, fleet: Mapping[str, Any] | Fleet) -> tuple[Lake, Pipeline]:
    """A new lake and its pipeline, ready for the first batch."""
    lake = Lake(spark, str(folder))
    pipeline = Pipeline(spark, lake, Fleet.model_validate(fleet))
    pipeline.open()
    return lake, pipeline


def backfilled(
    spark: SparkSession, lake: Lake, fleet: Fleet, records: Records, clock: datetime, again: bool = False
) -> Backfilled:
    """A backfill that nobody watches or interrupts."""
    return run_backfill(spark, lake, fleet, records, clock, again, Stopping(), lambda *_: None)


def delta(folder: Path, table: Table) -> DeltaTable:
    """The table as readers without a JVM see it."""
    return DeltaTable(str(folder / table.path))


def versions(folder: Path) -> dict[str, int]:
    """How often each table has been written."""
    return {table.path: delta(folder, table).version() for table in ALL}


def rows(folder: Path, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = delta(folder, table).to_pyarrow_table().to_pylist()
    return found


def content(folder: Path, table: Table) -> list[Mapping[str, Any]]:
    """The rows without what says when they were computed, in the key's order."""
    found = [
        {name: row[name] for name in table.names if name not in table.volatile} for row in rows(folder, table)
    ]
    return sorted(found, key=lambda row: tuple(str(row[name]) for name in table.key))


def counts(folder: Path) -> dict[str, int]:
    """How many rows each table has."""
    return {table.path: delta(folder, table).to_pyarrow_table().num_rows for table in ALL}
