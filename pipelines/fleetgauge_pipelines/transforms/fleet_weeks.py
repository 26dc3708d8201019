"""Compute fleet-weeks from cluster-weeks: quantiles over the clusters with enough coverage."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side

#: Each metric, and whether a higher value is worse.
METRICS = {
    "latency_p99_us": True,
    "availability_p99": False,
    "availability_ratio": False,
    "latency_budget_left_minutes": False,
}
_PERCENTILES = {"median": 50, "p90": 90, "p99": 99}

Row = Mapping[str, Any]


def compute_fleet_weeks(
    weeks: Iterable[Row], segments: Iterable[tuple[str, str, str]]
) -> list[dict[str, Any]]:
    """Return gold/fleet_weeks without its revision.

    ``weeks`` are the latest revisions of cluster-weeks; ``segments`` are (cluster, segment, segment value),
    one for each segment that a cluster belongs to; ('fleet', '') is the segment of all clusters.
    """
    segments_of = defaultdict(list)
    for cluster_id, segment, value in segments:
        segments_of[cluster_id].append((segment, value))
    groups: dict[tuple[date, str, str], list[Row]] = defaultdict(list)
    for row in weeks:
        for segment, value in segments_of[row["cluster_id"]]:
            groups[row["week"], segment, value].append(row)
    return [
        {
            "week": week,
            "metric": metric,
            "segment": segment,
            "segment_value": value,
            **_compute_metric(metric, rows),
            "closed": all(row["closed"] for row in rows),
        }
        for (week, segment, value), rows in groups.items()
        for metric in METRICS
    ]


def _compute_metric(metric: str, rows: Sequence[Row]) -> dict[str, Any]:
    values = sorted(
        float(row[metric])
        for row in rows
        if row[metric] is not None and row["coverage"] is not None and row["coverage"] >= MIN_FLEET_COVERAGE
    )
    find = quantile if METRICS[metric] else quantile_from_bad_side
    return {
        **{name: find(percent, values) for name, percent in _PERCENTILES.items()},
        "clusters": len(values),
        "clusters_excluded": len(rows) - len(values),
    }
