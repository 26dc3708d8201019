"""The small fleet's minutes, each as a batch of the pipeline."""

from pyspark.sql import SparkSession

from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from tests.spark.lakes import raw_frame
from tests.spark.small_fleet import RECORDS_A_MINUTE, make_records, minute_at


def process_minute(spark: SparkSession, pipeline: Pipeline, number: int) -> BatchResult:
    """Process the records of a minute, counted from 0, a minute after it has ended."""
    values = [record.encode() for record in make_records(number)]
    raw = raw_frame(spark, values, first=number * RECORDS_A_MINUTE)
    return pipeline.process(raw, f"batch/{number}", minute_at(number + 2))
