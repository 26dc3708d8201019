"""Helpers for tests of lakes: raw frames, backfills, and the content of tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ALL_TABLES, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_files import RAW_DDL
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.jobs.backfill import BackfillResult, RecordSource, run_backfill
from fleetgauge_pipelines.jobs.batch import Pipeline

#: A record's source as the stream writes it: topic id, partition and offset.
SOURCE = "topic-id/0/{}"


def raw_frame(spark: SparkSession, values: Sequence[bytes | None], first: int = 0) -> DataFrame:
    """Return values as raw records at consecutive offsets of a partition, from ``first`` on."""
    rows = [(value, SOURCE.format(at), at, None) for at, value in enumerate(values, first)]
    return create_dataframe(spark, rows, RAW_DDL)


def opened(spark: SparkSession, folder: Path, fleet: Mapping[str, Any] | Fleet) -> tuple[Lake, Pipeline]:
    """Return a new lake and its pipeline, ready for the first batch."""
    lake = Lake(spark, str(folder))
    pipeline = Pipeline(spark, lake, Fleet.model_validate(fleet))
    pipeline.open()
    return lake, pipeline


def backfilled(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    records: RecordSource,
    clock: datetime,
    again: bool = False,
    changes: Sequence[ClusterChange] = (),
) -> BackfillResult:
    """Run a backfill without progress output or interruption."""
    return run_backfill(spark, lake, fleet, records, changes, clock, again, ShutdownFlag(), lambda *_: None)


def delta(folder: Path, table: Table) -> DeltaTable:
    """Return the table as readers without a JVM see it."""
    return DeltaTable(str(folder / table.path))


def versions(folder: Path) -> dict[str, int]:
    """Return the version of each table, which counts its commits."""
    return {table.path: delta(folder, table).version() for table in ALL_TABLES}


def rows(folder: Path, table: Table) -> list[dict[str, Any]]:
    table_rows: list[dict[str, Any]] = delta(folder, table).to_pyarrow_table().to_pylist()
    return table_rows


def content(folder: Path, table: Table) -> list[Mapping[str, Any]]:
    """Return a table's rows without volatile columns, sorted by key."""
    table_rows = [
        {name: row[name] for name in table.column_names if name not in table.volatile}
        for row in rows(folder, table)
    ]
    return sorted(table_rows, key=lambda row: tuple(str(row[name]) for name in table.key))


def counts(folder: Path) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {table.path: delta(folder, table).to_pyarrow_table().num_rows for table in ALL_TABLES}
