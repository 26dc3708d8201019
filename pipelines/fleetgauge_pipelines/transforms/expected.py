"""Which broker-minutes are expected: the spine on which silver is built.

A minute with a record expects what its agents held for registered; a minute
without one expects what was last known. So a broker (or an agent) that falls
silent leaves unmeasured rows, not missing ones.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: cluster_id, lo and hi (minutes, inclusive), carried (brokers that hold before the first record, or NULL),
#: retired.
RANGES_DDL = "cluster_id string, lo timestamp, hi timestamp, carried array<int>, retired array<int>"


def in_ranges(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """The rows whose cluster and minute lie in one of the ranges."""
    bounds = F.broadcast(ranges.select(F.col("cluster_id").alias("of"), "lo", "hi"))
    inside = (rows["cluster_id"] == bounds["of"]) & rows["minute"].between(bounds["lo"], bounds["hi"])
    return rows.join(bounds, inside).drop("of", "lo", "hi")


def expected_brokers(records: DataFrame, ranges: DataFrame) -> DataFrame:
    """(cluster_id, minute, brokers) for every minute of every range; ``records`` are bronze rows in them."""
    minutes = ranges.withColumn("minute", F.explode(F.expr("sequence(lo, hi, interval 1 minute)")))
    spine = minutes.join(said_brokers(records), ["cluster_id", "minute"], "left")
    ascending = Window.partitionBy("cluster_id").orderBy("minute")
    last_known = F.last("said", ignorenulls=True).over(ascending)
    return (
        spine.withColumn("brokers", F.coalesce(last_known, "carried"))
        .where(F.col("brokers").isNotNull())
        .select("cluster_id", "minute", _without_retired().alias("brokers"))
    )


def said_brokers(records: DataFrame) -> DataFrame:
    """(cluster_id, minute, said): the brokers that the records of a minute name, retired ones too."""
    return records.groupBy("cluster_id", "minute").agg(
        F.array_distinct(
            F.concat(F.flatten(F.collect_set("expected_brokers")), F.collect_set("broker_id")),
        ).alias("said")
    )


def _without_retired() -> Column:
    return F.sort_array(F.array_except("brokers", "retired"))
