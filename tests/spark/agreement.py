"""Compare the tables that Spark computes for a random lake with the oracle's, row by row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import (
    ACTIONS,
    BROKER_MINUTES,
    BURN_CAUSES,
    CHANGES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    QUARANTINE,
    ColumnType,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from tests.oracle.compare import find_differences
from tests.oracle.minute_rules import drop_duplicates
from tests.oracle.operations import Operations
from tests.oracle.oracle import Row, Tables, drop_lone_beginnings, evaluate, read_settings
from tests.oracle.random_fleets import RandomLake
from tests.oracle.revision_rules import apply_revisions
from tests.spark.lakes import backfilled, delta, rows


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows the oracle has for a table, and the differences from Spark's rows."""

    rows: int
    differences: tuple[str, ...]


def write_lake(spark: SparkSession, folder: Path, random_lake: RandomLake) -> Fleet:
    """Backfill the deliveries into ``folder``/lake one after the other, each with its own clock."""
    fleet = Fleet.model_validate(random_lake.document)
    lake = Lake(spark, str(folder / "lake"))
    lake.create_tables()
    for table, rows_of_table in _operation_rows(random_lake.operations).items():
        write_rows(folder / "lake", table, rows_of_table)
    for number, delivery in enumerate(random_lake.deliveries):
        files = write_files(folder / f"delivery-{number}", delivery.records)
        result = backfilled(spark, lake, fleet, open_record_folder(files), delivery.clock)
        verdicts = [verdict for batch in result.batches for verdict in batch.verdicts]
        assert all(verdict.success for verdict in verdicts), verdicts
    return fleet


def _operation_rows(operations: Operations) -> dict[Table, Sequence[Mapping[str, Any]]]:
    return {
        CORRECTIONS: operations.corrections,
        ACTIONS: operations.actions,
        HEALTH_EVENTS: operations.health_events,
        CHANGES: operations.changes,
    }


def write_rows(lake: Path, table: Table, content: Sequence[Mapping[str, Any]]) -> None:
    """Append rows as the writers beside the pipeline do."""
    delta_table = delta(lake, table)
    write_deltalake(
        delta_table,
        pa.Table.from_pylist(list(content), pa.schema(delta_table.schema().to_arrow())),
        mode="append",
    )


def write_files(folder: Path, records: Sequence[Mapping[str, Any]], files: int = 2) -> Path:
    """Write records to Avro container files, every other file compressed."""
    folder.mkdir(parents=True)
    schema = fastavro.parse_schema(json.loads(PROBE_MINUTE.text))
    for number in range(files):
        with (folder / f"part-{number}.avro").open("wb") as file:
            fastavro.writer(file, schema, records[number::files], codec=("null", "deflate")[number % 2])
    return folder


def compare(folder: Path, random_lake: RandomLake, fleet: Fleet) -> dict[str, Comparison]:
    """Return the comparison of each table by its path; quarantine must be empty."""
    wanted = expected(random_lake, fleet)
    records = drop_duplicates(record for delivery in random_lake.deliveries for record in delivery.records)
    tables: dict[Table, list[Row]] = {
        PROBE_MINUTES: [record | {"day": record["minute"].date()} for record in records],
        QUARANTINE: [],
        BROKER_MINUTES: wanted.broker_minutes,
        CLUSTER_MINUTES: wanted.cluster_minutes,
        CLUSTER_WEEKS: wanted.cluster_weeks,
        FLEET_WEEKS: wanted.fleet_weeks,
        BURN_CAUSES: wanted.burn_causes,
    }
    return {table.path: _compare_table(folder / "lake", table, rows) for table, rows in tables.items()}


def expected(random_lake: RandomLake, fleet: Fleet) -> Tables:
    """Return the oracle's tables after the last delivery."""
    settings = read_settings(fleet)
    records: list[Row] = []
    computations = []
    for delivery in random_lake.deliveries:
        records += delivery.records
        counted = drop_lone_beginnings(records, settings, delivery.clock)
        computations.append(evaluate(counted, settings, delivery.clock, random_lake.operations))
    return apply_revisions(computations)


def _compare_table(lake: Path, table: Table, wanted: Sequence[Row]) -> Comparison:
    differences = find_differences(table, wanted, _read_content(lake, table))
    return Comparison(len(wanted), tuple(str(difference) for difference in differences))


def assert_tables_equal(
    lake: Path, records: Sequence[Mapping[str, Any]], fleet: Fleet, clock: datetime
) -> None:
    """Assert that silver and gold are what the oracle computes from the records at the clock."""
    settings = read_settings(fleet)
    wanted = evaluate(drop_lone_beginnings(records, settings, clock), settings, clock)
    tables = {
        BROKER_MINUTES: wanted.broker_minutes,
        CLUSTER_MINUTES: wanted.cluster_minutes,
        CLUSTER_WEEKS: wanted.cluster_weeks,
        FLEET_WEEKS: wanted.fleet_weeks,
        BURN_CAUSES: wanted.burn_causes,
    }
    for table, wanted_rows in tables.items():
        differences = find_differences(table, wanted_rows, _read_content(lake, table))
        assert not differences, f"{table.path}: {len(differences)} differences:\n" + "\n".join(
            str(difference) for difference in differences[:20]
        )
        assert wanted_rows or table is BURN_CAUSES, f"{table.path}: the oracle has nothing to compare"


def _read_content(lake: Path, table: Table) -> list[Row]:
    """Return the table's rows as readers without a JVM see them, with maps as dicts."""
    maps = [column.name for column in table.columns if column.type is ColumnType.COUNT_MAP]
    return [
        row | {name: dict(row[name]) for name in maps if row[name] is not None} for row in rows(lake, table)
    ]
