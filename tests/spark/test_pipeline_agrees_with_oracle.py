"""Spark's tables of a random week with many faults are equal to the oracle's."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    BURN_CAUSES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from tests.oracle.compare import find_differences
from tests.oracle.oracle import evaluate, read_settings
from tests.oracle.week import START, random_fleet, random_week
from tests.spark.lakes import backfilled

#: The very instant at which a UTC week that ends three hours after START closes.
CLOCK = START + timedelta(hours=51)


def write_files(folder: Path, records: Sequence[Mapping[str, Any]], files: int = 3) -> Path:
    folder.mkdir(parents=True)
    schema = fastavro.schema.load_schema(str(_schema_file()))
    for number in range(files):
        with (folder / f"part-{number}.avro").open("wb") as file:
            codec = ("null", "deflate")[number % 2]
            fastavro.writer(file, schema, records[number::files], codec=codec)
    return folder


def _schema_file() -> Path:
    import fleetgauge_core.contract

    return Path(fleetgauge_core.contract.__file__).with_name("probe_minute_v1.avsc")


def rows_of(frame: DataFrame, table: Table) -> list[dict[str, Any]]:
    names = [name for name in table.column_names if name not in table.volatile]
    return [
        {name: _aware(value) for name, value in row.asDict(True).items()}
        for row in frame.select(*names).collect()
    ]


def _aware(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def assert_tables_equal(
    lake: Lake, records: Sequence[Mapping[str, Any]], fleet: Fleet, clock: datetime
) -> None:
    wanted = evaluate(records, read_settings(fleet), clock)
    expected = {
        BROKER_MINUTES: wanted.broker_minutes,
        CLUSTER_MINUTES: wanted.cluster_minutes,
        CLUSTER_WEEKS: wanted.cluster_weeks,
        FLEET_WEEKS: wanted.fleet_weeks,
        BURN_CAUSES: wanted.burn_causes,
    }
    for table, rows in expected.items():
        differences = find_differences(table, rows, rows_of(lake.read(table), table))
        assert not differences, f"{table.path}: {len(differences)} differences:\n" + "\n".join(
            str(difference) for difference in differences[:20]
        )
        assert rows or table is BURN_CAUSES, f"{table.path}: the oracle has nothing to compare"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_random_week_from_files_equals_the_oracle(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    records = random_week(seed)
    fleet = Fleet.model_validate(random_fleet(seed))
    folder = write_files(tmp_path / "records", records)
    lake = Lake(spark, str(tmp_path / "lake"))

    [outcome] = backfilled(spark, lake, fleet, open_record_folder(folder), CLOCK).batches

    assert outcome.ingested.quarantined == 0
    assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts
    assert_tables_equal(lake, records, fleet, CLOCK)
    assert PROBE_MINUTE.fingerprint
