"""Revisions: an open week is overwritten, a closed one never; what changes it makes the next revision."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

OPEN = 0
CLOSED = "closed"
LATE_RECORDS = "late_records"


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The highest revision of each key."""
    newest_first = Window.partitionBy(*key).orderBy(F.col("revision").desc())
    return rows.withColumn("nth", F.row_number().over(newest_first)).where("nth = 1").drop("nth")


def revise(computed: DataFrame, stored: DataFrame, key: Sequence[str], content: Sequence[str]) -> DataFrame:
    """Every row that the table should hold for the computed keys.

    ``computed`` has the key, the content columns and ``closed``; ``stored`` the
    table's rows of the same keys. A closed week keeps its earlier revisions and
    loses revision 0. Adds ``revision`` and ``revision_reason``.
    """
    reasons = "revision_reason" in stored.columns
    stored = stored if reasons else stored.withColumn("revision_reason", F.lit(None).cast("string"))
    last = latest(stored.where(F.col("revision") > OPEN), key).select(
        *key,
        F.col("revision").alias("last"),
        F.struct(*content).alias("was"),
        F.col("revision_reason").alias("why"),
    )
    joined = computed.join(last, list(key), "left")
    ever_closed = F.col("last").isNotNull()
    same = _same(F.struct(*content), F.col("was"))
    revision = (
        F.when(~F.col("closed") & ~ever_closed, F.lit(OPEN))
        .when(~ever_closed, F.lit(1))
        .when(same, F.col("last"))
        .otherwise(F.col("last") + 1)
    )
    reason = (
        F.when(~F.col("closed") & ~ever_closed, F.lit(None).cast("string"))
        .when(~ever_closed, F.lit(CLOSED))
        .when(same, F.col("why"))
        .otherwise(F.lit(LATE_RECORDS))
    )
    now = joined.withColumns({"revision_reason": reason, "closed": F.col("closed") | ever_closed})
    now = now.withColumn("revision", revision).drop("last", "was", "why")
    closed_now = now.where("closed").select(*key, F.col("revision").alias("newest"))
    kept = (
        stored.where(F.col("revision") > OPEN)
        .join(closed_now, list(key))
        .where("revision < newest")
        .drop("newest")
    )
    return now.unionByName(kept.select(*now.columns))


def _same(one: Column, other: Column) -> Column:
    return one.eqNullSafe(other)
