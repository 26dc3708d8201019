"""Whether the tables that Spark makes of a random lake are the oracle's, row by row and column by column."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    QUARANTINE,
    Table,
    Type,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import records_in
from tests.oracle.compare import differences
from tests.oracle.minute_rules import distinct
from tests.oracle.operations import Operations
from tests.oracle.oracle import Row, Tables, evaluate, settings_of
from tests.oracle.random_fleets import RandomLake
from tests.oracle.revision_rules import after
from tests.spark.lakes import backfilled, delta, rows


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows of a table were held against how many of the oracle's, and what differs."""

    rows: int
    differences: tuple[str, ...]


def take(spark: SparkSession, folder: Path, one: RandomLake) -> Fleet:
    """Backfill delivery after delivery into ``folder``/lake, each by its own clock."""
    fleet = Fleet.model_validate(one.document)
    lake = Lake(spark, str(folder / "lake"))
    lake.create_tables()
    for table, rows_of_table in _said(one.operations).items():
        write_rows(folder / "lake", table, rows_of_table)
    for number, delivery in enumerate(one.deliveries):
        files = write_files(folder / f"delivery-{number}", delivery.records)
        done = backfilled(spark, lake, fleet, records_in(files), delivery.clock)
        verdicts = [verdict for outcome in done.outcomes for verdict in outcome.verdicts]
        assert all(verdict.success for verdict in verdicts), verdicts
    return fleet


def _said(operations: Operations) -> dict[Table, Sequence[Mapping[str, Any]]]:
    return {
        CORRECTIONS: operations.corrections,
        ACTIONS: operations.actions,
        HEALTH_EVENTS: operations.health_events,
    }


def write_rows(lake: Path, table: Table, content: Sequence[Mapping[str, Any]]) -> None:
    """Append them as what writes beside the pipeline does."""
    there = delta(lake, table)
    write_deltalake(
        there, pa.Table.from_pylist(list(content), pa.schema(there.schema().to_arrow())), mode="append"
    )


def write_files(folder: Path, records: Sequence[Mapping[str, Any]], files: int = 2) -> Path:
    """The records as Avro container files, compressed and not by turns."""
    folder.mkdir(parents=True)
    schema = fastavro.parse_schema(json.loads(PROBE_MINUTE.text))
    for number in range(files):
        with (folder / f"part-{number}.avro").open("wb") as file:
            fastavro.writer(file, schema, records[number::files], codec=("null", "deflate")[number % 2])
    return folder


def compare(folder: Path, one: RandomLake, fleet: Fleet) -> dict[str, Comparison]:
    """By table path; of quarantine, that it is empty."""
    wanted = expected(one, fleet)
    records = distinct(record for delivery in one.deliveries for record in delivery.records)
    tables: dict[Table, list[Row]] = {
        PROBE_MINUTES: [record | {"day": record["minute"].date()} for record in records],
        QUARANTINE: [],
        BROKER_MINUTES: wanted.broker_minutes,
        CLUSTER_MINUTES: wanted.cluster_minutes,
        CLUSTER_WEEKS: wanted.cluster_weeks,
        FLEET_WEEKS: wanted.fleet_weeks,
        BURN_CAUSES: wanted.burn_causes,
    }
    return {table.path: _compared(folder / "lake", table, rows) for table, rows in tables.items()}


def expected(one: RandomLake, fleet: Fleet) -> Tables:
    """The oracle's tables after the last delivery."""
    settings = settings_of(fleet)
    so_far: list[Row] = []
    computations = []
    for delivery in one.deliveries:
        so_far += delivery.records
        computations.append(evaluate(so_far, settings, delivery.clock, one.operations))
    return after(computations)


def _compared(lake: Path, table: Table, wanted: Sequence[Row]) -> Comparison:
    found = differences(table, wanted, _content(lake, table))
    return Comparison(len(wanted), tuple(str(one) for one in found))


def _content(lake: Path, table: Table) -> list[Row]:
    """The table's rows as readers without a JVM see them; maps as dicts."""
    maps = [column.name for column in table.columns if column.type is Type.COUNTS]
    return [row | {name: dict(row[name]) for name in maps} for row in rows(lake, table)]
