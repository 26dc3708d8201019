"""Compute cluster-minutes from broker-minutes: the worst broker's levels, and those of all brokers pooled."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.causes import add_causes, cause_aggregates
from fleetgauge_pipelines.transforms.quantile import pooled_quantile, sort_ascending


def compute_cluster_minutes(brokers: DataFrame, intervals: DataFrame) -> DataFrame:
    """Return silver/cluster_minutes of the rows of compute_broker_minutes.

    ``intervals`` has the columns of CAUSE_INTERVALS_DDL and a row for each cluster.
    """
    objectives = intervals.select("cluster_id", "latency_objective_us")
    rows = aggregate_brokers(brokers.join(F.broadcast(objectives), "cluster_id"), cause_aggregates())
    return add_causes(rows.join(F.broadcast(intervals), "cluster_id"))


def aggregate_brokers(brokers: DataFrame, more: Mapping[str, Column]) -> DataFrame:
    """Return the worst and the pooled levels of each cluster and minute, and ``more`` aggregates by name."""
    client = F.col("measured") & (F.col("leg") == "client")
    leader = F.col("measured") & (F.col("leg") == "leader")
    rows = brokers.groupBy("cluster_id", "minute").agg(
        _highest(client, "latency_p99_us").alias("slowest"),
        F.max(F.when(client, F.col("latency_p99_censored_us"))).alias("latency_p99_censored_us"),
        sort_ascending(F.flatten(F.collect_list("slowest"))).alias("slowest_of_all"),
        F.min(F.when(client, F.struct("availability", "broker_id"))).alias("least_available"),
        _highest(leader, "latency_p99_us").alias("slowest_leader"),
        F.count_if(F.col("leg") == "client").cast("int").alias("brokers_expected"),
        F.count_if(client).cast("int").alias("brokers_measured"),
        F.coalesce(F.sum(F.when(client, F.col("attempted"))), F.lit(0)).cast("long").alias("attempted"),
        F.coalesce(F.sum(F.when(client, F.col("succeeded"))), F.lit(0)).cast("long").alias("succeeded"),
        *(aggregate.alias(name) for name, aggregate in more.items()),
    )
    return rows.select(
        "cluster_id",
        "minute",
        F.col("slowest.value").alias("latency_p99_us"),
        (-F.col("slowest.negated_broker_id")).alias("latency_worst_home"),
        "latency_p99_censored_us",
        pooled_quantile(99, F.col("slowest_of_all"), F.col("succeeded"))
        .cast("long")
        .alias("latency_pooled_p99_us"),
        F.col("least_available.availability").alias("availability"),
        F.col("least_available.broker_id").alias("availability_worst_home"),
        F.when(F.col("attempted") > 0, F.col("succeeded") / F.col("attempted")).alias("availability_pooled"),
        F.col("slowest_leader.value").alias("leader_ack_p99_us"),
        (-F.col("slowest_leader.negated_broker_id")).alias("leader_worst_broker"),
        "brokers_expected",
        "brokers_measured",
        "attempted",
        "succeeded",
        F.to_date("minute").alias("day"),
        *more,
    )


def _highest(where: Column, name: str) -> Column:
    # The id is negated so that max() takes the lowest id where several brokers share the maximum.
    pair = F.struct(F.col(name).alias("value"), (-F.col("broker_id")).alias("negated_broker_id"))
    return F.max(F.when(where & F.col(name).isNotNull(), pair))
