"""Replay quarantined records through the batch, after their cause was fixed."""

from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.quarantine_view import QuarantineFilter
from fleetgauge_core.tables import QUARANTINE
from fleetgauge_pipelines.io.lake import Lake, materialize
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline


def run_replay(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    selection: QuarantineFilter,
    clock: datetime,
    accepts_unlikely: bool = False,
) -> BatchResult | None:
    """Process the selected rows of quarantine again; rows that are valid now leave it, however old they are.

    ``accepts_unlikely``: a person accepts records that were refused as unlikely (ACCEPTABLE_REASONS).
    Return None if no row is selected. A row is removed in the batch's last step, when every table includes
    its record, so a replay may fail at any point and be repeated.
    """
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    rows = lake.read(QUARANTINE).where(_matches(selection))
    if rows.isEmpty():
        return None
    # Rows whose reason changes would leave the selection while the batch still reads it.
    raw = materialize(_raw(rows))
    return pipeline.process(raw, f"replay/{clock:%Y-%m-%dT%H:%M:%SZ}", clock, None, accepts_unlikely)


def _matches(selection: QuarantineFilter) -> Column:
    where = F.lit(True)
    if selection.reason is not None:
        where = where & (F.col("reason") == selection.reason)
    if selection.source is not None:
        where = where & (F.col("source") == selection.source)
    if selection.since is not None:
        where = where & (F.col("ingested_at") >= F.lit(selection.since))
    return where


def _raw(rows: DataFrame) -> DataFrame:
    # A source ends in the record's offset in its partition, or its index in its file: that is the order in
    # which the records first came.
    number = F.regexp_extract("source", r"(\d+)$", 1)
    within = F.regexp_replace("source", r"\d+$", "")
    # The value of a record from a file does not contain the file's schema. That a field was missing from that
    # schema is known only from the reason that was stored.
    foreign = F.substring("value", 1, len(PROBE_MINUTE.header)) != F.lit(bytearray(PROBE_MINUTE.header))
    missing_in_file = foreign & (F.col("reason") == "missing_field")
    return rows.select(
        "value",
        "source",
        F.row_number()
        .over(Window.orderBy(within, number.try_cast("bigint")))
        .cast("bigint")
        .alias("position"),
        F.when(missing_in_file, F.col("reason")).alias("hint"),
    )
