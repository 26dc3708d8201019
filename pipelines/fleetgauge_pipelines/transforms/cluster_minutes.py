"""Broker-minutes to cluster-minutes: the worst broker, and the pool beside it."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.causes import cause_facts, with_causes
from fleetgauge_pipelines.transforms.quantile import ascending, pooled_quantile


def cluster_minutes(brokers: DataFrame, reasons: DataFrame) -> DataFrame:
    """silver/cluster_minutes of broker-minutes with their ``slowest``; ``reasons`` as REASONS_DDL."""
    objectives = reasons.select("cluster_id", "latency_objective_us")
    rows = levels(brokers.join(F.broadcast(objectives), "cluster_id"), cause_facts())
    return with_causes(rows.join(F.broadcast(reasons), "cluster_id"))


def levels(brokers: DataFrame, also: Mapping[str, Column]) -> DataFrame:
    """The worst and the pool of each cluster and minute, and further aggregates by their names."""
    client = F.col("measured") & (F.col("leg") == "client")
    leader = F.col("measured") & (F.col("leg") == "leader")
    rows = brokers.groupBy("cluster_id", "minute").agg(
        _highest(client, "latency_p99_us").alias("slowest"),
        F.max(F.when(client, F.col("latency_p99_censored_us"))).alias("latency_p99_censored_us"),
        ascending(F.flatten(F.collect_list("slowest"))).alias("slowest_of_all"),
        F.min(F.when(client, F.struct("availability", "broker_id"))).alias("least_available"),
        _highest(leader, "latency_p99_us").alias("slowest_leader"),
        F.count_if(F.col("leg") == "client").cast("int").alias("brokers_expected"),
        F.count_if(client).cast("int").alias("brokers_measured"),
        F.coalesce(F.sum(F.when(client, F.col("attempted"))), F.lit(0)).cast("long").alias("attempted"),
        F.coalesce(F.sum(F.when(client, F.col("succeeded"))), F.lit(0)).cast("long").alias("succeeded"),
        *(aggregate.alias(name) for name, aggregate in also.items()),
    )
    return rows.select(
        "cluster_id",
        "minute",
        F.col("slowest.value").alias("latency_p99_us"),
        (-F.col("slowest.other_way")).alias("latency_worst_home"),
        "latency_p99_censored_us",
        pooled_quantile(99, F.col("slowest_of_all"), F.col("succeeded"))
        .cast("long")
        .alias("latency_pooled_p99_us"),
        F.col("least_available.availability").alias("availability"),
        F.col("least_available.broker_id").alias("availability_worst_home"),
        F.when(F.col("attempted") > 0, F.col("succeeded") / F.col("attempted")).alias("availability_pooled"),
        F.col("slowest_leader.value").alias("leader_ack_p99_us"),
        (-F.col("slowest_leader.other_way")).alias("leader_worst_broker"),
        "brokers_expected",
        "brokers_measured",
        "attempted",
        "succeeded",
        F.to_date("minute").alias("day"),
        *also,
    )


def _highest(where: Column, name: str) -> Column:
    """The maximum with the broker it came from; the lowest id where several share it."""
    pair = F.struct(F.col(name).alias("value"), (-F.col("broker_id")).alias("other_way"))
    return F.max(F.when(where & F.col(name).isNotNull(), pair))
