"""The fleet's clusters as lines of a table, the worst first."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import ClusterView, FleetView, href
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import sparkline
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.freshness import Freshness

#: Clusters in the table: more, nobody reads, and a page of thousands is slow for everybody.
ROWS = 500
#: Weeks in a line's trend.
TREND_WEEKS = 12
#: Among a cluster's segments, what its brokers run.
VERSION = "kafka"

Segments = Mapping[str, Set[tuple[str, str]]]
Burns = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of clusters beside their week: alerts, silence, weeks before, burn now, segments.

    ``alerts`` are None where they cannot be read.
    """

    alerts: Sequence[Alert] | None
    fresh: Freshness
    history: pa.Table
    burns: Burns
    segments: Segments


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One line of the table. Numbers in the unit that is shown, for sorting.

    ``trend`` has the p99 of the last weeks as bars, ``times_before`` this week's over the last one's.
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


def cluster_rows(
    week: date, clusters: Sequence[ClusterWeek], beside: Beside, view: FleetView, live: bool
) -> tuple[tuple[ClusterRow, ...], int]:
    """The worst of those that are asked for, and how many they are. Only what is shown is made.

    ``live``: of the newest week, whose links move on with the clock.
    """
    wanted = (view.search or "").casefold()
    unfinished: dict[str, list[Alert]] = {}
    for alert in beside.alerts or ():
        if alert.cleared is None:
            unfinished.setdefault(alert.cluster_id, []).append(alert)
    matching = [
        (one, _state(unfinished.get(one.cluster_id, ()), beside, one.cluster_id))
        for one in clusters
        if wanted in one.cluster_id.casefold()
    ]
    matching.sort(key=lambda one: _worst_first(one[0], one[1][0]))
    shown = matching[:ROWS]
    histories = _histories(beside.history, week, [one.cluster_id for one, _ in shown])
    found = (_row(one, *state, histories.get(one.cluster_id, ()), beside, view, live) for one, state in shown)
    return tuple(found), len(matching)


def _state(unfinished: Sequence[Alert], beside: Beside, cluster_id: str) -> tuple[int, str]:
    """The symbol says it without colour."""
    silence = beside.fresh.silence(cluster_id)
    opened = [alert for alert in unfinished if alert.is_open]
    if opened:
        return 0, f"▲ {', '.join(map(_named, opened))}"
    if silence is not None:
        return 1, f"◌ NO DATA for {silence}"
    if unfinished:
        return 2, f"△ suspected {', '.join(map(_named, unfinished))}"
    return (3, "● no alert") if beside.alerts is not None else (2, "? alerts not known")


def _named(alert: Alert) -> str:
    return alert.kind if alert.broker_id is None else f"{alert.kind} broker {alert.broker_id}"


def _histories(history: pa.Table, week: date, clusters: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """Of each cluster its p99 of the last weeks, oldest first, each at its highest revision."""
    own = history.filter(pc.is_in(history["cluster_id"], pa.array(clusters, pa.string())))
    by_cluster: dict[str, dict[date, int | None]] = {}
    for row in own.sort_by("revision").to_pylist():
        by_cluster.setdefault(row["cluster_id"], {})[row["week"]] = row["latency_p99_us"]
    weeks = [week - timedelta(days=7 * back) for back in reversed(range(TREND_WEEKS))]
    return {cluster: tuple(known.get(day) for day in weeks) for cluster, known in by_cluster.items()}


def _row(
    week: ClusterWeek,
    rank: int,
    state: str,
    history: Sequence[int | None],
    beside: Beside,
    view: FleetView,
    live: bool,
) -> ClusterRow:
    before = history[-2] if len(history) > 1 else None
    burn_1h, burn_6h = beside.burns.get(week.cluster_id, (None, None)) if live else (None, None)
    return ClusterRow(
        cluster_id=week.cluster_id,
        link=href(ClusterView(week.cluster_id, None if live else week.week, lens=view.lens)),
        state=state,
        rank=rank,
        version=", ".join(
            sorted(value for name, value in beside.segments.get(week.cluster_id, ()) if name == VERSION)
        ),
        latency_p99_ms=_ms(week.latency_p99_us),
        latency_p99_censored_ms=_ms(week.latency_p99_censored_us),
        objective_ms=_ms(week.latency_objective_us),
        times_before=week.latency_p99_us / before if before and week.latency_p99_us is not None else None,
        trend=sparkline(history),
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


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000
