"""A lake's tables keep up with the registry, and readers without a JVM with them."""

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from fleetgauge_core.tables import CLUSTER_MINUTES, EVIDENCE, QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import dataframe
from tests.spark.lakes import delta, rows, versions


def test_a_column_that_the_registry_gained_is_added_and_old_rows_hold_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, str(tmp_path))
    for table in (QUALITY, EVIDENCE, CLUSTER_MINUTES):
        old = replace(table, columns=table.columns[:3] + table.columns[-1:])
        values = [("x", None, None, None)]
        frame = dataframe(spark, values, old.ddl)
        frame.write.format("delta").partitionBy(*old.partition_by).save(lake.path(old))

    lake.create_tables()
    before = versions(tmp_path)
    lake.create_tables()

    assert versions(tmp_path) == before
    for table in (QUALITY, EVIDENCE, CLUSTER_MINUTES):
        assert {field.name for field in delta(tmp_path, table).schema().fields} == set(table.names)
        (row,) = rows(tmp_path, table)
        assert [value for value in row.values() if value is not None] == ["x"]
        lake.append(table, lake.read(table))
        assert len(rows(tmp_path, table)) == 2
