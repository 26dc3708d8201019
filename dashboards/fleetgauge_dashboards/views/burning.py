"""How fast each cluster spends its latency budget now, for a whole fleet at once.

The same as `slo.burn` says of one window, by arrow: a fleet has a million recent minutes.
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


def latency_burns(
    recent: pa.Table, weeks: Iterable[ClusterWeek], now: datetime
) -> Mapping[str, tuple[float | None, ...]]:
    """Times the even pace over each of ``WINDOWS_MIN``, by cluster; None where nothing was measured.

    A window ends with the cluster's newest minute, or now where that is late.
    """
    objectives = _objectives(weeks)
    if not len(recent) or not len(objectives):
        return {}
    ends = _ends(recent, now)
    # No window begins earlier, for one that would is late and ends now.
    reached = now - STALE_AFTER - max(WINDOWS_MIN) * MINUTE
    within = recent.filter(pc.greater_equal(recent["minute"], pa.scalar(reached, recent["minute"].type)))
    within = within.join(objectives, "cluster_id", join_type="inner").join(ends, "cluster_id")
    within = within.filter(pc.greater(pc.fill_null(within["brokers_measured"], 0), 0))
    bad = pc.fill_null(pc.greater(within["latency_p99_censored_us"], within["objective_us"]), False)
    within = within.append_column("bad", bad.cast(pa.int64()))
    found: dict[str, tuple[float | None, ...]] = {}
    per_window = [_ratios(within, minutes) for minutes in WINDOWS_MIN]
    for cluster_id in ends["cluster_id"].to_pylist():
        found[cluster_id] = tuple(ratios.get(cluster_id) for ratios in per_window)
    return found


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
    late = pc.less(ends, pa.scalar(now - STALE_AFTER, ends.type))
    return pa.table({"cluster_id": newest["cluster_id"], "end": pc.if_else(late, this_minute, ends)})


def _ratios(minutes: pa.Table, window_min: int) -> dict[str, float]:
    since = pc.subtract(minutes["end"], pa.scalar(window_min * MINUTE, pa.duration("us")))
    inside = pc.and_(pc.greater_equal(minutes["minute"], since), pc.less(minutes["minute"], minutes["end"]))
    counted = minutes.filter(inside).group_by("cluster_id").aggregate([("bad", "sum"), ("bad", "count")])
    return {
        row["cluster_id"]: LATENCY_BUDGET_DIVISOR * row["bad_sum"] / row["bad_count"]
        for row in counted.to_pylist()
    }
