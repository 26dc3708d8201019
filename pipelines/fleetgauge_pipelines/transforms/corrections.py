"""Cluster-minutes after corrections have excluded minutes or brokers."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.cluster_minutes import aggregate_brokers

#: A range that a correction excludes, [starts, ends); without a broker_id it covers the whole cluster.
EXCLUDED_DDL = "correction_id string, cluster_id string, broker_id int, starts timestamp, ends timestamp"


def apply_corrections(minutes: DataFrame, client: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the cluster-minutes that still count.

    A minute with excluded brokers is computed again from its other brokers, and dropped if it has none left.
    ``client`` has the client leg's broker-minutes of the same time, ``spans`` the columns of EXCLUDED_DDL.
    """
    whole, of_broker = _by_scope(spans)
    not_excluded = minutes.join(whole, _covered(minutes, whole), "left_anti")
    excluded = client.join(
        of_broker, _covered(client, of_broker) & _same_broker(client, of_broker), "left_semi"
    )
    changed = excluded.select("cluster_id", "minute").distinct()
    remaining = client.join(F.broadcast(changed), ["cluster_id", "minute"], "left_semi").join(
        of_broker, _covered(client, of_broker) & _same_broker(client, of_broker), "left_anti"
    )
    unchanged = not_excluded.join(F.broadcast(changed), ["cluster_id", "minute"], "left_anti")
    recomputed = aggregate_brokers(remaining.withColumn("slowest", F.lit(None).cast("array<int>")), {})
    recomputed = recomputed.join(whole, _covered(recomputed, whole), "left_anti")
    return unchanged.unionByName(recomputed, allowMissingColumns=True)


def find_applied_corrections(
    minutes: DataFrame, client: DataFrame, spans: DataFrame, weeks: DataFrame
) -> DataFrame:
    """Return (cluster_id, week, correction_id) of each correction that excluded a minute of the week.

    ``weeks`` has the columns of WEEKS_DDL; the other frames are as in apply_corrections.
    """
    whole, of_broker = _by_scope(spans)
    excluded = (
        minutes.join(whole, _covered(minutes, whole)).select(minutes["cluster_id"], "minute", "correction_id")
    ).unionByName(
        client.join(of_broker, _covered(client, of_broker) & _same_broker(client, of_broker)).select(
            client["cluster_id"], "minute", "correction_id"
        )
    )
    bounds = F.broadcast(weeks.select(F.col("cluster_id").alias("week_cluster_id"), "week", "starts", "ends"))
    inside = (F.col("cluster_id") == F.col("week_cluster_id")) & (F.col("minute") >= F.col("starts"))
    return (
        excluded.join(bounds, inside & (F.col("minute") < F.col("ends")))
        .select("cluster_id", "week", "correction_id")
        .distinct()
    )


def _by_scope(spans: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the spans of whole clusters and those of single brokers, with columns renamed for joins."""
    renamed = spans.select(
        "correction_id",
        F.col("cluster_id").alias("in_cluster"),
        F.col("broker_id").alias("in_broker"),
        F.col("starts").alias("from_minute"),
        F.col("ends").alias("to_minute"),
    )
    return (
        F.broadcast(renamed.where("in_broker IS NULL")),
        F.broadcast(renamed.where("in_broker IS NOT NULL")),
    )


def _covered(rows: DataFrame, spans: DataFrame) -> Column:
    return (
        (rows["cluster_id"] == spans["in_cluster"])
        & (rows["minute"] >= spans["from_minute"])
        & (rows["minute"] < spans["to_minute"])
    )


def _same_broker(rows: DataFrame, spans: DataFrame) -> Column:
    return rows["broker_id"] == spans["in_broker"]
