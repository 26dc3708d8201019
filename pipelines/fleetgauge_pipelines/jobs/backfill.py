"""Backfill: a folder of Avro files through the same batch as the stream's."""

from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.avro_files import read_avro_files
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import Outcome, Pipeline
from fleetgauge_probes.fleet import Fleet


def run_backfill(spark: SparkSession, lake: Lake, fleet: Fleet, folder: Path, clock: datetime) -> Outcome:
    """Take every record of the folder. Doing it again changes nothing. Raises FileNotFoundError."""
    raw = read_avro_files(spark, folder)
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    return pipeline.process(raw, f"backfill/{folder.name}", clock)
