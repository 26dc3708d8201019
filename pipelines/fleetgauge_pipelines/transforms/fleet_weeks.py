"""Cluster-weeks to fleet-weeks: quantiles over the clusters that were seen well enough."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_pipelines.transforms.quantile import quantile, quantile_from_bad_side

#: Which segments a cluster belongs to, ('fleet', '') among them.
SEGMENTS_DDL = "cluster_id string, segment string, segment_value string"

#: The columns of cluster_weeks that this needs.
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

#: Metric to whether more of it is worse.
METRICS = {
    "latency_p99_us": True,
    "availability_p99": False,
    "availability_ratio": False,
    "latency_budget_left_minutes": False,
}


def fleet_weeks(weeks: DataFrame, segments: DataFrame) -> DataFrame:
    """gold/fleet_weeks without its revision, of each cluster-week's latest revision."""
    metrics = F.array(
        *(
            F.struct(F.lit(name).alias("metric"), F.col(name).cast("double").alias("value"))
            for name in METRICS
        )
    )
    rows = (
        weeks.join(F.broadcast(segments), "cluster_id")
        .select("week", "segment", "segment_value", "coverage", "closed", F.explode(metrics).alias("m"))
        .select("week", "segment", "segment_value", "closed", "m.metric", "m.value", "coverage")
    )
    counts = (F.col("coverage") >= FLEET_COVERAGE) & F.col("value").isNotNull()
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
        _from_its_bad_side(50).alias("median"),
        _from_its_bad_side(90).alias("p90"),
        _from_its_bad_side(99).alias("p99"),
        "clusters",
        "clusters_excluded",
        "closed",
    )


def _from_its_bad_side(a: int) -> Column:
    more_is_worse = [name for name, worse in METRICS.items() if worse]
    values = F.col("values")
    return F.when(F.col("metric").isin(more_is_worse), quantile(a, values)).otherwise(
        quantile_from_bad_side(a, values)
    )
