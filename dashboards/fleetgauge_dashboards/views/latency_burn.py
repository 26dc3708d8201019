"""Compute how fast each cluster of a fleet burns its latency budget now.

The result equals that of `slo.burn` for one window; Arrow computes it because a fleet has a million recent
minutes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.views.freshness import STALE_AFTER

WINDOWS_MIN = (60, 360)


def compute_latency_burns(
    recent: pa.Table, weeks: Iterable[ClusterWeek], now: datetime
) -> Mapping[str, tuple[float | None, ...]]:
    """Return each cluster's burn rate over each of ``WINDOWS_MIN``; None where nothing was measured.

    A window ends with the cluster's newest minute, or at ``now`` where that is stale.
    """
    objectives = _objectives(weeks)
    if not len(recent) or not len(objectives):
        return {}
    ends = _ends(recent, now)
    # No window begins earlier: data that is older than this is stale, and its window ends at now.
    earliest = now - STALE_AFTER - max(WINDOWS_MIN) * MINUTE
    in_reach = recent.filter(pc.greater_equal(recent["minute"], pa.scalar(earliest, recent["minute"].type)))
    in_reach = in_reach.join(objectives, "cluster_id", join_type="inner").join(ends, "cluster_id")
    in_reach = in_reach.filter(pc.greater(pc.fill_null(in_reach["brokers_measured"], 0), 0))
    is_bad = pc.fill_null(pc.greater(in_reach["latency_p99_censored_us"], in_reach["objective_us"]), False)
    in_reach = in_reach.append_column("bad", is_bad.cast(pa.int64()))
    burns: dict[str, tuple[float | None, ...]] = {}
    per_window = [_ratios(in_reach, minutes) for minutes in WINDOWS_MIN]
    for cluster_id in ends["cluster_id"].to_pylist():
        burns[cluster_id] = tuple(ratios.get(cluster_id) for ratios in per_window)
    return burns


def _objectives(weeks: Iterable[ClusterWeek]) -> pa.Table:
    rows = [(week.cluster_id, week.latency_objective_us) for week in weeks if week.latency_objective_us]
    return pa.table(
        {
            "cluster_id": pa.array([cluster for cluster, _ in rows], pa.string()),
            "objective_us": pa.array([objective for _, objective in rows], pa.int64()),
        }
    )


def _ends(recent: pa.Table, now: datetime) -> pa.Table:
    newest = recent.group_by("cluster_id").aggregate([("minute", "max")])
    ends = pc.add(newest["minute_max"], pa.scalar(MINUTE, pa.duration("us")))
    this_minute = pa.scalar(now.replace(second=0, microsecond=0), ends.type)
    is_stale = pc.less(ends, pa.scalar(now - STALE_AFTER, ends.type))
    return pa.table({"cluster_id": newest["cluster_id"], "end": pc.if_else(is_stale, this_minute, ends)})


def _ratios(minutes: pa.Table, window_min: int) -> dict[str, float]:
    since = pc.subtract(minutes["end"], pa.scalar(window_min * MINUTE, pa.duration("us")))
    in_window = pc.and_(
        pc.greater_equal(minutes["minute"], since), pc.less(minutes["minute"], minutes["end"])
    )
    counts = minutes.filter(in_window).group_by("cluster_id").aggregate([("bad", "sum"), ("bad", "count")])
    return {
        row["cluster_id"]: LATENCY_BUDGET_DIVISOR * row["bad_sum"] / row["bad_count"]
        for row in counts.to_pylist()
    }
