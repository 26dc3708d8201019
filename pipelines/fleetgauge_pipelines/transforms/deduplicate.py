"""At-least-once delivery made exactly once: one record per run and sequence.

The first record of a key wins. A later one with the same content is a replay
and disappears; one with other content is a conflicting_duplicate.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fleetgauge_core.tables import PROBE_MINUTES, Type

#: Bronze columns that the record itself brings.
RECORD_COLUMNS = tuple(n for n in PROBE_MINUTES.names if n not in ("source", "ingested_at", "day"))

_KEY = list(PROBE_MINUTES.key)


def content_hash() -> Column:
    """A hash of a record's columns that does not depend on the order of map entries."""
    counts = {c.name for c in PROBE_MINUTES.columns if c.type is Type.COUNTS}
    return F.xxhash64(
        *(F.sort_array(F.map_entries(name)) if name in counts else F.col(name) for name in RECORD_COLUMNS)
    )


def that_may_meet(stored: DataFrame, records: DataFrame) -> DataFrame:
    """The stored rows whose run and sequence lie among those of the records; found without their samples."""
    runs = records.groupBy("run_id").agg(F.min("sequence").alias("first"), F.max("sequence").alias("last"))
    bounds = F.broadcast(runs.withColumnRenamed("run_id", "run"))
    among = (F.col("run_id") == F.col("run")) & F.col("sequence").between(F.col("first"), F.col("last"))
    return stored.join(bounds, among).drop("run", "first", "last")


def first_of_each(records: DataFrame, known: DataFrame) -> DataFrame:
    """Judge records (bronze columns, ``position``) against each other and against bronze.

    Adds ``fate``: 'new', 'replay' or 'conflicting_duplicate'.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("position")
    stored = known.select(*_KEY, content_hash().alias("stored_hash"))
    return (
        records.withColumn("hash", content_hash())
        .withColumn("turn", F.row_number().over(in_order))
        .withColumn("first_hash", F.first("hash").over(in_order))
        .join(stored, _KEY, "left")
        .withColumn("winner_hash", F.coalesce("stored_hash", "first_hash"))
        .withColumn(
            "fate",
            F.when(F.col("hash") != F.col("winner_hash"), "conflicting_duplicate")
            .when(F.col("stored_hash").isNotNull() | (F.col("turn") > 1), "replay")
            .otherwise("new"),
        )
        .drop("hash", "turn", "first_hash", "stored_hash", "winner_hash")
    )
