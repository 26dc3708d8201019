"""Aggregates of broker-minutes on which the batch suite is validated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SilverFacts = dict[str, float | None]

#: Each aggregate, and how its values of several pieces combine.
_MERGERS: Mapping[str, Callable[[Iterable[float]], float | None]] = {
    "availability_min": partial(min, default=None),
    "availability_max": partial(max, default=None),
    "quantiles_out_of_order": sum,
    "more_successes_than_attempts": sum,
    "measured_without_attempts": sum,
    "expected_minutes": sum,
}


def compute_silver_facts(brokers: DataFrame) -> SilverFacts:
    """Compute the aggregates of broker-minutes (the columns of silver/broker_minutes)."""
    out_of_order = (F.col("latency_p50_us") > F.col("latency_p99_us")) | (
        F.col("latency_p99_us") > F.col("latency_max_us")
    )
    row = brokers.agg(
        F.min("availability").alias("availability_min"),
        F.max("availability").alias("availability_max"),
        F.count_if(out_of_order).alias("quantiles_out_of_order"),
        F.count_if(F.col("succeeded") > F.col("attempted")).alias("more_successes_than_attempts"),
        F.count_if(F.col("measured") & (F.col("attempted") == 0)).alias("measured_without_attempts"),
        F.count(F.lit(1)).alias("expected_minutes"),
    ).first()
    return row.asDict() if row else {}


def merge_silver_facts(facts: Sequence[SilverFacts]) -> SilverFacts:
    """Combine the aggregates of several pieces into those of all of them."""
    return {
        name: merge(value for piece in facts if (value := piece[name]) is not None)
        for name, merge in _MERGERS.items()
    }
