"""Build the rows of the fleet's table of clusters, worst first."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import ClusterView, FleetView, href
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import draw_sparkline, to_milliseconds
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_dashboards.views.freshness import Freshness

#: The most clusters in the table; a page with thousands of rows is slow.
MAX_ROWS = 500
#: Weeks in a row's trend.
TREND_WEEKS = 12
#: The segment with the Kafka version of a cluster's brokers.
VERSION_SEGMENT = "kafka"

Segments = Mapping[str, Set[tuple[str, str]]]
Burns = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What the table shows about clusters besides their week.

    ``alerts`` are None where they cannot be read; ``history`` has p99s of earlier weeks, ``burns`` current
    burn rates by cluster.
    """

    alerts: Sequence[HealthAlert] | None
    fresh: Freshness
    history: pa.Table
    burns: Burns
    segments: Segments


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A row of the table; numbers have the unit that is shown, so that the grid can sort them.

    ``trend`` shows the p99 of the last weeks as bars, ``times_before`` is this week's p99 over the last
    week's.
    """

    cluster_id: str
    link: str
    state: str
    rank: int
    version: str
    latency_p99_ms: float | None
    latency_p99_censored_ms: float | None
    objective_ms: float | None
    times_before: float | None
    trend: str
    availability_percent: float | None
    budget_left_min: float | None
    bad_minutes: int | None
    burn_1h: float | None
    burn_6h: float | None
    coverage_percent: float | None


def build_cluster_rows(
    week: date, clusters: Sequence[ClusterWeek], context: ClusterContext, view: FleetView, live: bool
) -> tuple[tuple[ClusterRow, ...], int]:
    """Return the worst of the clusters that match the view's search, and the count of all that match.

    ``live`` says that it is the newest week, so that links follow the clock.
    """
    search = (view.search or "").casefold()
    uncleared: dict[str, list[HealthAlert]] = {}
    for alert in context.alerts or ():
        if alert.cleared_at is None:
            uncleared.setdefault(alert.cluster_id, []).append(alert)
    matching = [
        (cluster, _rank_and_state(uncleared.get(cluster.cluster_id, ()), context, cluster.cluster_id))
        for cluster in clusters
        if search in cluster.cluster_id.casefold()
    ]
    matching.sort(key=lambda match: _worst_first(match[0], match[1][0]))
    shown = matching[:MAX_ROWS]
    histories = _histories(context.history, week, [cluster.cluster_id for cluster, _ in shown])
    rows = (
        _row(cluster, *cluster_state, histories.get(cluster.cluster_id, ()), context, view, live)
        for cluster, cluster_state in shown
    )
    return tuple(rows), len(matching)


def _rank_and_state(
    uncleared: Sequence[HealthAlert], context: ClusterContext, cluster_id: str
) -> tuple[int, str]:
    """Return a sort rank and a state text whose symbol distinguishes it without colour."""
    silence = context.fresh.describe_silence(cluster_id)
    open_alerts = [alert for alert in uncleared if alert.is_open]
    if open_alerts:
        return 0, f"▲ {', '.join(map(_alert_label, open_alerts))}"
    if silence is not None:
        return 1, f"◌ NO DATA for {silence}"
    if uncleared:
        return 2, f"△ suspected {', '.join(map(_alert_label, uncleared))}"
    return (3, "● no alert") if context.alerts is not None else (2, "? alerts unknown")


def _alert_label(alert: HealthAlert) -> str:
    return alert.kind if alert.broker_id is None else f"{alert.kind} broker {alert.broker_id}"


def _histories(history: pa.Table, week: date, clusters: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """Return each cluster's p99 of the last weeks, oldest first, each at its highest revision."""
    of_clusters = history.filter(pc.is_in(history["cluster_id"], pa.array(clusters, pa.string())))
    by_cluster: dict[str, dict[date, int | None]] = {}
    for row in of_clusters.sort_by("revision").to_pylist():
        by_cluster.setdefault(row["cluster_id"], {})[row["week"]] = row["latency_p99_us"]
    weeks = [week - timedelta(days=7 * back) for back in reversed(range(TREND_WEEKS))]
    return {
        cluster: tuple(p99_by_week.get(day) for day in weeks) for cluster, p99_by_week in by_cluster.items()
    }


def _row(
    week: ClusterWeek,
    rank: int,
    state: str,
    history: Sequence[int | None],
    context: ClusterContext,
    view: FleetView,
    live: bool,
) -> ClusterRow:
    p99_before = history[-2] if len(history) > 1 else None
    burn_1h, burn_6h = context.burns.get(week.cluster_id, (None, None)) if live else (None, None)
    return ClusterRow(
        cluster_id=week.cluster_id,
        link=href(ClusterView(week.cluster_id, None if live else week.week, display=view.display)),
        state=state,
        rank=rank,
        version=", ".join(
            sorted(
                value for name, value in context.segments.get(week.cluster_id, ()) if name == VERSION_SEGMENT
            )
        ),
        latency_p99_ms=to_milliseconds(week.latency_p99_us),
        latency_p99_censored_ms=to_milliseconds(week.latency_p99_censored_us),
        objective_ms=to_milliseconds(week.latency_objective_us),
        times_before=week.latency_p99_us / p99_before
        if p99_before and week.latency_p99_us is not None
        else None,
        trend=draw_sparkline(history),
        availability_percent=None if week.availability_ratio is None else 100 * week.availability_ratio,
        budget_left_min=week.latency_budget_left_minutes,
        bad_minutes=week.bad_minutes,
        burn_1h=burn_1h,
        burn_6h=burn_6h,
        coverage_percent=None if week.coverage is None else 100 * week.coverage,
    )


def _worst_first(week: ClusterWeek, rank: int) -> tuple[int, float, int, str]:
    left = week.latency_budget_left_minutes
    return rank, float("inf") if left is None else left, -(week.latency_p99_censored_us or 0), week.cluster_id
