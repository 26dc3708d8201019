"""Which broker-minutes are expected: silver has a row for each of them, measured or not.

A minute with a record expects the brokers that its agents saw registered; a minute without one expects those
of the last minute with one. So a broker or an agent that stops leaves unmeasured rows instead of missing
ones.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fleetgauge_core.contract import Leg

_LEGS = tuple(leg.value for leg in Leg)

#: A range of a cluster's minutes, lo and hi included; the brokers expected before its first record (NULL if
#: unknown); and the brokers that are retired, which are never expected.
RANGES_DDL = "cluster_id string, lo timestamp, hi timestamp, initial_brokers array<int>, retired array<int>"


def select_ranges(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return the rows whose cluster and minute lie in one of the ranges (RANGES_DDL)."""
    bounds = F.broadcast(ranges.select(F.col("cluster_id").alias("range_cluster_id"), "lo", "hi"))
    inside = (rows["cluster_id"] == bounds["range_cluster_id"]) & rows["minute"].between(
        bounds["lo"], bounds["hi"]
    )
    return rows.join(bounds, inside).drop("range_cluster_id", "lo", "hi")


def compute_expected_brokers(records: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return a row for every minute of every range from the first one on whose expected brokers are known.

    The columns are cluster_id and minute; ``brokers``, the expected ones in ascending order; ``silent``, the
    (broker_id, leg) of those without a record; ``shared`` and ``attempted`` as in summarize_recorded_minutes.
    ``records`` are bronze's rows in the ranges (RANGES_DDL).
    """
    minutes = ranges.withColumn("minute", F.explode(F.expr("sequence(lo, hi, interval 1 minute)")))
    all_minutes = minutes.join(summarize_recorded_minutes(records), ["cluster_id", "minute"], "left")
    in_order = Window.partitionBy("cluster_id").orderBy("minute")
    last_known = F.coalesce(F.last("reported", ignorenulls=True).over(in_order), "initial_brokers")
    expected = all_minutes.withColumn("brokers", F.sort_array(F.array_except(last_known, "retired")))
    silent = F.concat(*(_without_record(leg) for leg in _LEGS))
    return expected.where(F.col("brokers").isNotNull()).select(
        "cluster_id", "minute", "brokers", silent.alias("silent"), "shared", "attempted"
    )


def summarize_recorded_minutes(records: DataFrame) -> DataFrame:
    """Return a row for every minute with a record.

    The columns are cluster_id and minute; ``reported``, the brokers that its records name, including retired
    ones; ``client`` and ``leader``, the brokers with a record of that leg; ``shared``, whether a broker and
    leg has several records, of several vantages or runs; ``attempted``, the number of the client leg's
    probes.
    """
    client = F.col("leg") == "client"
    of_minute = records.groupBy("cluster_id", "minute").agg(
        F.flatten(F.collect_set("expected_brokers")).alias("registered"),
        *(F.collect_set(F.when(F.col("leg") == leg, F.col("broker_id"))).alias(leg) for leg in _LEGS),
        F.count("*").alias("records"),
        F.sum(F.when(client, F.col("attempted"))).alias("attempted"),
    )
    return of_minute.select(
        "cluster_id",
        "minute",
        F.array_distinct(F.concat("registered", *_LEGS)).alias("reported"),
        *_LEGS,
        (F.col("records") > F.size("client") + F.size("leader")).alias("shared"),
        "attempted",
    )


def _without_record(leg: str) -> Column:
    recorded = F.coalesce(F.col(leg), F.array().cast("array<int>"))
    return F.transform(
        F.array_except("brokers", recorded),
        lambda broker: F.struct(broker.alias("broker_id"), F.lit(leg).alias("leg")),
    )
