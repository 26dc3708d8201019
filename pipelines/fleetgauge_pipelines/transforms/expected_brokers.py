"""Which broker-minutes are expected: the spine on which silver is built.

A minute with a record expects what its agents held for registered; a minute
without one expects what was last known. So a broker (or an agent) that falls
silent leaves unmeasured rows, not missing ones.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fleetgauge_core.contract import Leg

_LEGS = tuple(leg.value for leg in Leg)

#: cluster_id, lo and hi (minutes, inclusive), carried (brokers that hold before the first record, or NULL),
#: retired.
RANGES_DDL = "cluster_id string, lo timestamp, hi timestamp, carried array<int>, retired array<int>"


def in_ranges(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """The rows whose cluster and minute lie in one of the ranges."""
    bounds = F.broadcast(ranges.select(F.col("cluster_id").alias("of"), "lo", "hi"))
    inside = (rows["cluster_id"] == bounds["of"]) & rows["minute"].between(bounds["lo"], bounds["hi"])
    return rows.join(bounds, inside).drop("of", "lo", "hi")


def expected_brokers(records: DataFrame, ranges: DataFrame) -> DataFrame:
    """One row for every minute of every range, once it is known which brokers it expects.

    cluster_id, minute; ``brokers``: the expected ones, ascending; ``silent``: their (broker_id, leg) of which
    no record came; ``shared``, ``attempted``: as in ``recorded_minutes``. ``records``: bronze in the ranges.
    """
    minutes = ranges.withColumn("minute", F.explode(F.expr("sequence(lo, hi, interval 1 minute)")))
    spine = minutes.join(recorded_minutes(records), ["cluster_id", "minute"], "left")
    in_order = Window.partitionBy("cluster_id").orderBy("minute")
    last_known = F.coalesce(F.last("said", ignorenulls=True).over(in_order), "carried")
    known = spine.withColumn("brokers", F.sort_array(F.array_except(last_known, "retired")))
    silent = F.concat(*(_without_record(leg) for leg in _LEGS))
    return known.where(F.col("brokers").isNotNull()).select(
        "cluster_id", "minute", "brokers", silent.alias("silent"), "shared", "attempted"
    )


def recorded_minutes(records: DataFrame) -> DataFrame:
    """One row for every minute with a record.

    cluster_id, minute; ``said``: the brokers that its records name, retired ones too; ``client``, ``leader``:
    those whose leg has a record; ``shared``: whether a broker and leg has several (vantages, or runs);
    ``attempted``: the client leg's probes.
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
        F.array_distinct(F.concat("registered", *_LEGS)).alias("said"),
        *_LEGS,
        (F.col("records") > F.size("client") + F.size("leader")).alias("shared"),
        "attempted",
    )


def _without_record(leg: str) -> Column:
    came = F.coalesce(F.col(leg), F.array().cast("array<int>"))
    return F.transform(
        F.array_except("brokers", came),
        lambda broker: F.struct(broker.alias("broker_id"), F.lit(leg).alias("leg")),
    )
