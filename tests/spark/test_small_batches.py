"""A small batch spends its time on planning: how much it has Spark plan must not grow unnoticed."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.lakes import opened
from tests.spark.small_batches import process_minute
from tests.spark.small_fleet import FLEET, RECORDS_A_MINUTE
from tests.spark.spark_work import SparkWork, count_spark_work

#: Of a minute of three clusters of three brokers, once their weeks have begun.
MOST = SparkWork(executions=1, jobs=3, commits=7)


def test_a_steady_batch_has_spark_plan_no_more_than_it_did(spark: SparkSession, tmp_path: Path) -> None:
    _, pipeline = opened(spark, tmp_path, FLEET)
    stored = [process_minute(spark, pipeline, number).ingested.stored for number in range(2)]
    work = count_spark_work(spark, tmp_path, lambda: process_minute(spark, pipeline, 2))
    assert stored == [RECORDS_A_MINUTE] * 2
    assert work.executions <= MOST.executions
    assert work.jobs <= MOST.jobs
    assert work.commits <= MOST.commits
