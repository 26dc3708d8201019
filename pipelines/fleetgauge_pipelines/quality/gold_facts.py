"""Aggregates of weeks on which the gold suite is validated, compared with counts taken from silver."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fleetgauge_pipelines.transforms.fleet_weeks import METRICS

Row = Mapping[str, Any]

_AVAILABILITIES = ("availability_p99", "availability_ratio")
_LATENCIES = ("latency_p99_us", "latency_p99_censored_us")


@dataclass(frozen=True, slots=True)
class SilverCounts:
    """How many minutes silver has for a cluster's week, and how many broker-minutes were measured."""

    minutes: int
    brokers_measured: int
    brokers_expected: int

    @property
    def coverage(self) -> float | None:
        """Return measured over expected broker-minutes; None where none was expected."""
        return self.brokers_measured / self.brokers_expected if self.brokers_expected else None


def count_silver_minutes(minutes: DataFrame, weeks: DataFrame) -> dict[tuple[str, date], SilverCounts]:
    """Count silver's minutes by cluster and week of ``weeks`` (WEEKS_DDL).

    The counts do not use the code that computes the weeks' levels, so that the gate can compare the two.
    """
    bounds = F.broadcast(weeks.select(F.col("cluster_id").alias("week_cluster_id"), "week", "starts", "ends"))
    inside = (F.col("cluster_id") == F.col("week_cluster_id")) & (F.col("minute") >= F.col("starts"))
    counted = minutes.join(bounds, inside & (F.col("minute") < F.col("ends"))).groupBy("cluster_id", "week")
    rows = counted.agg(
        F.count(F.lit(1)).alias("minutes"),
        F.sum("brokers_measured").alias("measured"),
        F.sum("brokers_expected").alias("expected"),
    ).collect()
    return {
        (row["cluster_id"], row["week"]): SilverCounts(
            row["minutes"], row["measured"] or 0, row["expected"] or 0
        )
        for row in rows
    }


def compute_gold_facts(
    clusters: Sequence[Row], fleet: Sequence[Row], silver: Mapping[str, SilverCounts]
) -> dict[str, float | None]:
    """Compute the facts of one week.

    ``clusters`` and ``fleet`` are the latest revisions of the week's rows; ``silver`` has the counts of those
    clusters that were computed in this batch.
    """
    computed = [row for row in clusters if row["cluster_id"] in silver]
    availabilities = [*_values(clusters, _AVAILABILITIES), *_quantiles(fleet, _AVAILABILITIES)]
    latencies = [*_values(clusters, _LATENCIES), *_quantiles(fleet, _LATENCIES)]
    coverages = _values(clusters, ("coverage",))
    counted = [
        row["clusters"] + row["clusters_excluded"]
        for row in fleet
        if (row["segment"], row["segment_value"]) == ("fleet", "")
    ]
    return {
        "week_availability_min": min(availabilities, default=None),
        "week_availability_max": max(availabilities, default=None),
        "week_latency_min_us": min(latencies, default=None),
        "coverage_min": min(coverages, default=None),
        "coverage_max": max(coverages, default=None),
        "more_bad_than_expected": _count(row["bad_minutes"] > row["minutes_expected"] for row in clusters),
        "more_measured_than_expected": _count(
            row["minutes_measured"] > row["minutes_expected"] for row in clusters
        ),
        "coverage_unlike_silver": _count(
            row["coverage"] != silver[row["cluster_id"]].coverage for row in computed
        ),
        "fleet_quantiles_out_of_order": _count(_out_of_order(row) for row in fleet),
        "cluster_weeks": len(clusters),
        "fleet_clusters_least": min(counted, default=0),
        "fleet_clusters_most": max(counted, default=0),
        "week_minutes_expected": sum(row["minutes_expected_raw"] for row in computed),
        "silver_cluster_minutes": sum(counts.minutes for counts in silver.values()),
    }


def _values(rows: Iterable[Row], names: Iterable[str]) -> list[float]:
    return [row[name] for row in rows for name in names if row[name] is not None]


def _quantiles(fleet: Iterable[Row], metrics: Iterable[str]) -> list[float]:
    return _values((row for row in fleet if row["metric"] in metrics), ("median", "p90", "p99"))


def _count(conditions: Iterable[bool]) -> int:
    return sum(conditions)


def _out_of_order(row: Row) -> bool:
    # Quantiles count from the bad side: they rise for latencies and fall for availabilities.
    values = [value for value in (row["median"], row["p90"], row["p99"]) if value is not None]
    return values != sorted(values, reverse=not METRICS[row["metric"]])
