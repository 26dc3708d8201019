"""Aggregates of weeks on which the gold suite is validated, compared with counts taken from silver."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition
from fleetgauge_pipelines.transforms.fleet_weeks import METRICS
from fleetgauge_pipelines.transforms.records import to_minute, to_minutes

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


def count_silver_minutes(
    minutes: pa.Table, weeks: Sequence[WeekDefinition]
) -> dict[tuple[str, date], SilverCounts]:
    """Count silver's minutes by cluster and week.

    The counts do not use the code that computes the weeks' levels, so that the gate can compare the two.
    """
    clusters = sorted({week.cluster_id for week in weeks})
    numbers = {cluster_id: number for number, cluster_id in enumerate(clusters)}
    cluster = np.asarray(
        pc.index_in(minutes["cluster_id"], pa.array(clusters, pa.string())).fill_null(-1), np.int64
    )
    at = to_minutes(minutes["minute"])
    order = np.lexsort((at, cluster))
    cluster, at = cluster[order], at[order]
    totals = [
        np.concatenate([[0], np.cumsum(np.asarray(minutes[name], np.int64)[order])])
        for name in ("brokers_measured", "brokers_expected")
    ]
    counts = {}
    for week in weeks:
        number = numbers[week.cluster_id]
        begin, end = np.searchsorted(cluster, [number, number + 1])
        lo, hi = begin + np.searchsorted(at[begin:end], [to_minute(week.starts), to_minute(week.ends)])
        if lo < hi:
            measured, expected = (int(total[hi] - total[lo]) for total in totals)
            counts[week.cluster_id, week.week] = SilverCounts(int(hi - lo), measured, expected)
    return counts


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
