"""A lake's tables get new columns of the registry, and readers without a JVM can read them."""

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from fleetgauge_core.tables import CLUSTER_MINUTES, EVIDENCE, QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe
from tests.spark.lakes import delta, rows, versions


def test_a_new_column_is_added_and_is_null_in_old_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    for table in (QUALITY, EVIDENCE, CLUSTER_MINUTES):
        old = replace(table, columns=table.columns[:3] + table.columns[-1:])
        values = [("x", None, None, None)]
        frame = create_dataframe(spark, values, old.ddl)
        frame.write.format("delta").partitionBy(*old.partition_by).save(lake.path(old))

    lake.create_tables()
    before = versions(tmp_path)
    lake.create_tables()

    assert versions(tmp_path) == before
    for table in (QUALITY, EVIDENCE, CLUSTER_MINUTES):
        assert {field.name for field in delta(tmp_path, table).schema().fields} == set(table.column_names)
        (row,) = rows(tmp_path, table)
        assert [value for value in row.values() if value is not None] == ["x"]
