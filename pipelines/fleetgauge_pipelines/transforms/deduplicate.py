"""Deduplicate records that were delivered at least once: one record for each run and sequence.

The first record of a key is kept. A later record with the same content is a replay and is dropped; a later
record with other content is a conflicting_duplicate.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fleetgauge_core.tables import PROBE_MINUTES, ColumnType

#: Bronze columns that are fields of the record itself.
RECORD_COLUMNS = tuple(
    name for name in PROBE_MINUTES.column_names if name not in ("source", "ingested_at", "day")
)

_KEY = list(PROBE_MINUTES.key)


def hash_content() -> Column:
    """Return a hash of a record's columns that does not depend on the order of map entries."""
    counts = {column.name for column in PROBE_MINUTES.columns if column.type is ColumnType.COUNT_MAP}
    return F.xxhash64(
        *(F.sort_array(F.map_entries(name)) if name in counts else F.col(name) for name in RECORD_COLUMNS)
    )


def select_possible_duplicates(stored: DataFrame, records: DataFrame) -> DataFrame:
    """Return the stored rows with a run_id and a sequence in the range of the records'.

    Only the key columns are compared, so that rows are found without reading their samples.
    """
    runs = records.groupBy("run_id").agg(F.min("sequence").alias("first"), F.max("sequence").alias("last"))
    bounds = F.broadcast(runs.withColumnRenamed("run_id", "new_run_id"))
    in_range = (F.col("run_id") == F.col("new_run_id")) & F.col("sequence").between(
        F.col("first"), F.col("last")
    )
    return stored.join(bounds, in_range).drop("new_run_id", "first", "last")


def judge_duplicates(records: DataFrame, candidates: DataFrame) -> DataFrame:
    """Compare records with each other and with stored ones, and add the column ``fate``.

    ``records`` has bronze's columns and ``position``, which gives their order; ``candidates`` are the stored
    records that may share a key. ``fate`` is 'new', 'replay' or 'conflicting_duplicate'.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("position")
    stored = candidates.select(*_KEY, hash_content().alias("stored_hash"))
    return (
        records.withColumn("hash", hash_content())
        .withColumn("occurrence", F.row_number().over(in_order))
        .withColumn("first_hash", F.first("hash").over(in_order))
        .join(stored, _KEY, "left")
        .withColumn("winner_hash", F.coalesce("stored_hash", "first_hash"))
        .withColumn(
            "fate",
            F.when(F.col("hash") != F.col("winner_hash"), "conflicting_duplicate")
            .when(F.col("stored_hash").isNotNull() | (F.col("occurrence") > 1), "replay")
            .otherwise("new"),
        )
        .drop("hash", "occurrence", "first_hash", "stored_hash", "winner_hash")
    )
