"""Compute fleet-weeks from cluster-weeks: quantiles over the clusters with enough coverage."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_pipelines.transforms.quantile import quantile, quantile_from_bad_side

#: A row for each segment that a cluster belongs to; ('fleet', '') is the segment of all clusters.
SEGMENTS_DDL = "cluster_id string, segment string, segment_value string"

#: The columns of gold/cluster_weeks that compute_fleet_weeks reads.
FLEET_INPUT = (
    "cluster_id",
    "week",
    "coverage",
    "closed",
    "latency_p99_us",
    "availability_p99",
    "availability_ratio",
    "latency_budget_left_minutes",
)

#: Each metric, and whether a higher value is worse.
METRICS = {
    "latency_p99_us": True,
    "availability_p99": False,
    "availability_ratio": False,
    "latency_budget_left_minutes": False,
}


def compute_fleet_weeks(weeks: DataFrame, segments: DataFrame) -> DataFrame:
    """Return gold/fleet_weeks without its revision.

    ``weeks`` has the FLEET_INPUT columns of each cluster-week's latest revision, ``segments`` the columns of
    SEGMENTS_DDL.
    """
    metrics = F.array(
        *(
            F.struct(F.lit(name).alias("metric"), F.col(name).cast("double").alias("value"))
            for name in METRICS
        )
    )
    rows = (
        weeks.join(F.broadcast(segments), "cluster_id")
        .select("week", "segment", "segment_value", "coverage", "closed", F.explode(metrics).alias("level"))
        .select("week", "segment", "segment_value", "closed", "level.metric", "level.value", "coverage")
    )
    counts = (F.col("coverage") >= MIN_FLEET_COVERAGE) & F.col("value").isNotNull()
    pooled = rows.groupBy("week", "metric", "segment", "segment_value").agg(
        F.sort_array(F.collect_list(F.when(counts, F.col("value")))).alias("values"),
        F.count_if(F.coalesce(counts, F.lit(False))).alias("clusters"),
        F.count_if(~F.coalesce(counts, F.lit(False))).alias("clusters_excluded"),
        F.bool_and("closed").alias("closed"),
    )
    return pooled.select(
        "week",
        "metric",
        "segment",
        "segment_value",
        _quantile_from_bad_side(50).alias("median"),
        _quantile_from_bad_side(90).alias("p90"),
        _quantile_from_bad_side(99).alias("p99"),
        "clusters",
        "clusters_excluded",
        "closed",
    )


def _quantile_from_bad_side(percent: int) -> Column:
    higher_is_worse = [name for name, worse in METRICS.items() if worse]
    values = F.col("values")
    return F.when(F.col("metric").isin(higher_is_worse), quantile(percent, values)).otherwise(
        quantile_from_bad_side(percent, values)
    )
