"""Cluster-minutes as they count once corrections have taken minutes and brokers out."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.cluster_minutes import levels

#: slo.corrections.Excluded.
EXCLUDED_DDL = "correction_id string, cluster_id string, broker_id int, starts timestamp, ends timestamp"


def corrected_minutes(minutes: DataFrame, client: DataFrame, spans: DataFrame) -> DataFrame:
    """What is left of ``minutes``; those that lost a broker are made again from the others.

    ``client``: the client leg's broker-minutes of the same time. A minute that lost every broker is left out.
    """
    whole, of_broker = _by_scope(spans)
    left = minutes.join(whole, _covered(minutes, whole), "left_anti")
    lost = client.join(of_broker, _covered(client, of_broker) & _same_broker(client, of_broker), "left_semi")
    remade = lost.select("cluster_id", "minute").distinct()
    others = client.join(F.broadcast(remade), ["cluster_id", "minute"], "left_semi").join(
        of_broker, _covered(client, of_broker) & _same_broker(client, of_broker), "left_anti"
    )
    kept = left.join(F.broadcast(remade), ["cluster_id", "minute"], "left_anti")
    again = levels(others.withColumn("slowest", F.lit(None).cast("array<int>")), {})
    again = again.join(whole, _covered(again, whole), "left_anti")
    return kept.unionByName(again, allowMissingColumns=True)


def applied(minutes: DataFrame, client: DataFrame, spans: DataFrame, weeks: DataFrame) -> DataFrame:
    """(cluster_id, week, correction_id): the corrections that took anything out of each week."""
    whole, of_broker = _by_scope(spans)
    taken = (
        minutes.join(whole, _covered(minutes, whole)).select(minutes["cluster_id"], "minute", "correction_id")
    ).unionByName(
        client.join(of_broker, _covered(client, of_broker) & _same_broker(client, of_broker)).select(
            client["cluster_id"], "minute", "correction_id"
        )
    )
    bounds = F.broadcast(weeks.select(F.col("cluster_id").alias("of"), "week", "starts", "ends"))
    inside = (F.col("cluster_id") == F.col("of")) & (F.col("minute") >= F.col("starts"))
    return (
        taken.join(bounds, inside & (F.col("minute") < F.col("ends")))
        .select("cluster_id", "week", "correction_id")
        .distinct()
    )


def _by_scope(spans: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Of whole clusters, and of single brokers; the columns renamed so that joins stay clear."""
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
