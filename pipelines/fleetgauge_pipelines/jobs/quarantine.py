"""Quarantined records once more through the batch, after a mend."""

from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.quarantine_view import Selection
from fleetgauge_core.tables import QUARANTINE
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import Outcome, Pipeline


def run_replay(
    spark: SparkSession, lake: Lake, fleet: Fleet, selection: Selection, clock: datetime
) -> Outcome | None:
    """Take the selected rows through the batch; what is good now leaves quarantine, however old it is.

    None where there is no such row. A row leaves as the batch's last step, when every
    table has its record, so a replay may break off anywhere and be repeated.
    """
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    rows = lake.read(QUARANTINE).where(_selected(selection))
    if rows.isEmpty():
        return None
    return pipeline.process(_raw(rows), f"replay/{clock:%Y-%m-%dT%H:%M:%SZ}", clock)


def _selected(selection: Selection) -> Column:
    where = F.lit(True)
    if selection.reason is not None:
        where = where & (F.col("reason") == selection.reason)
    if selection.source is not None:
        where = where & (F.col("source") == selection.source)
    if selection.since is not None:
        where = where & (F.col("ingested_at") >= F.lit(selection.since))
    return where


def _raw(rows: DataFrame) -> DataFrame:
    """As they came: a source ends in the record's number in its partition or file; that is their order."""
    number = F.regexp_extract("source", r"(\d+)$", 1)
    within = F.regexp_replace("source", r"\d+$", "")
    # A file's own schema is not in the bytes, so what it lacked is known from then alone.
    foreign = F.substring("value", 1, len(PROBE_MINUTE.header)) != F.lit(bytearray(PROBE_MINUTE.header))
    told_by_file = foreign & (F.col("reason") == "missing_field")
    return rows.select(
        "value",
        "source",
        F.struct(within, number.try_cast("bigint")).alias("position"),
        F.when(told_by_file, F.col("reason")).alias("hint"),
    )
