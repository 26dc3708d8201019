"""Compute cluster-weeks from cluster-minutes."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.causes import UNKNOWN
from fleetgauge_core.slo.levels import DEFINITION, LATENCY_BUDGET_DIVISOR
from fleetgauge_pipelines.transforms.quantile import quantile, quantile_from_bad_side

#: The weeks to compute: a row for each cluster and week, with its bounds in UTC, [starts, ends), and
#: objectives.
WEEKS_DDL = (
    "cluster_id string, week date, starts timestamp, ends timestamp, closed boolean, "
    "latency_objective_us bigint, availability_objective double"
)


def compute_cluster_weeks(minutes: DataFrame, weeks: DataFrame) -> DataFrame:
    """Return the levels of gold/cluster_weeks, without revisions; a week without a minute has no row.

    ``minutes`` are rows of silver/cluster_minutes, ``weeks`` has the columns of WEEKS_DDL.
    """
    bounds = F.broadcast(weeks.withColumnRenamed("cluster_id", "week_cluster_id"))
    inside = (
        (F.col("cluster_id") == F.col("week_cluster_id"))
        & (F.col("minute") >= F.col("starts"))
        & (F.col("minute") < F.col("ends"))
    )
    rows = minutes.join(bounds, inside)
    is_bad = F.col("latency_p99_censored_us") > F.col("latency_objective_us")
    sums = rows.groupBy(*weeks.columns).agg(
        _ascending("latency_p99_us").alias("p99s"),
        _ascending("latency_p99_censored_us").alias("censored"),
        _ascending("availability").alias("availabilities"),
        F.sum("attempted").alias("attempted"),
        F.sum("succeeded").alias("succeeded"),
        F.count_if(is_bad).alias("bad_minutes"),
        F.collect_list(F.when(is_bad, F.coalesce("cause", F.lit(UNKNOWN)))).alias("causes"),
        _spent_minutes().alias("availability_spent_minutes"),
        F.count_if(F.col("brokers_measured") > 0).alias("minutes_measured"),
        F.count("minute").alias("minutes_expected"),
        F.sum("brokers_measured").alias("brokers_measured"),
        F.sum("brokers_expected").alias("brokers_expected"),
    )
    budget = F.col("minutes_expected") / LATENCY_BUDGET_DIVISOR
    return sums.select(
        "cluster_id",
        "week",
        quantile(99, F.col("p99s")).alias("latency_p99_us"),
        quantile(99, F.col("censored")).alias("latency_p99_censored_us"),
        quantile_from_bad_side(99, F.col("availabilities")).alias("availability_p99"),
        F.when(F.col("attempted") > 0, F.col("succeeded") / F.col("attempted")).alias("availability_ratio"),
        "bad_minutes",
        "latency_objective_us",
        budget.alias("latency_budget_minutes"),
        (budget - F.col("bad_minutes")).alias("latency_budget_left_minutes"),
        "availability_objective",
        ((1 - F.col("availability_objective")) * F.col("minutes_expected")).alias(
            "availability_budget_minutes"
        ),
        "availability_spent_minutes",
        "minutes_measured",
        "minutes_expected",
        F.when(F.col("brokers_expected") > 0, F.col("brokers_measured") / F.col("brokers_expected")).alias(
            "coverage"
        ),
        "closed",
        _count_names(F.col("causes")).alias("causes"),
        F.lit(DEFINITION).alias("definition"),
    )


def _count_names(names: Column) -> Column:
    """Return a map from each name to how often it occurs, in the order of the names."""
    distinct = F.array_sort(F.array_distinct(names))
    count = F.transform(distinct, lambda wanted: F.size(F.filter(names, lambda name: name == wanted)))
    return F.map_from_arrays(distinct, count)


def _ascending(name: str) -> Column:
    # sort_array and not array_sort: the latter compares by a lambda and is many times slower. collect_list
    # has dropped the NULLs.
    return F.sort_array(F.collect_list(name))


def _spent_minutes() -> Column:
    # The sum of (1 - pooled availability) in the order of the minutes: a sum of doubles depends on the order
    # of its terms, and a fixed order gives the same bits in every run.
    spent = F.struct("minute", (1 - F.col("availability_pooled")).alias("spent"))
    in_order = F.sort_array(F.collect_list(F.when(F.col("availability_pooled").isNotNull(), spent)))
    return F.aggregate(in_order, F.lit(0.0), lambda total, minute: total + minute["spent"])
