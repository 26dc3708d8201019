"""Find what changed from one week to the next: budgets lost or regained, and latency slower or faster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_dashboards.views.cluster_budgets import (
    Row,
    availability_left_minutes,
    smallest_budget_share_left,
    sort_clusters_worst_first,
)

#: Smaller changes of p99 are not reported: under 10%, or under 1 ms.
MIN_CHANGE, MIN_CHANGE_US = 0.1, 1_000


@dataclass(frozen=True, slots=True)
class ClusterBudgets:
    """A cluster's error budgets in the week; ``cause`` had most of its bad minutes, None without any."""

    cluster_id: str
    bad_minutes: int
    bad_minutes_before: int | None
    latency_left_minutes: float | None
    availability_left_minutes: float | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class LatencyMover:
    """A cluster's latency p99 in the week before and in this week, in µs."""

    cluster_id: str
    before_us: int
    now_us: int
    cause: str | None

    @property
    def ratio(self) -> float:
        """Return this week's p99 over the one before; above 1 is slower."""
        return self.now_us / self.before_us


@dataclass(frozen=True, slots=True)
class WeekChanges:
    """The clusters that changed, worst first; ``slower`` and ``faster`` begin with the largest change."""

    newly_over: tuple[ClusterBudgets, ...]
    still_over: tuple[ClusterBudgets, ...]
    recovered: tuple[ClusterBudgets, ...]
    slower: tuple[LatencyMover, ...]
    faster: tuple[LatencyMover, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]


def find_week_changes(rows: Sequence[Row], previous_rows: Sequence[Row]) -> WeekChanges:
    """Compare both weeks' rows, which have one row for each cluster.

    A cluster without an earlier week that is over budget counts as newly over.
    """
    rows_before = {row["cluster_id"]: row for row in previous_rows}
    over_now = [row for row in sort_clusters_worst_first(rows) if smallest_budget_share_left(row) < 0]
    over_before = {row["cluster_id"] for row in previous_rows if smallest_budget_share_left(row) < 0}
    within_budget = [row for row in sort_clusters_worst_first(rows) if smallest_budget_share_left(row) >= 0]
    movers = _movers(rows, rows_before)
    cluster_ids = {row["cluster_id"] for row in rows}
    return WeekChanges(
        newly_over=tuple(
            summarize_budgets(row, rows_before) for row in over_now if row["cluster_id"] not in over_before
        ),
        still_over=tuple(
            summarize_budgets(row, rows_before) for row in over_now if row["cluster_id"] in over_before
        ),
        recovered=tuple(
            summarize_budgets(row, rows_before) for row in within_budget if row["cluster_id"] in over_before
        ),
        slower=tuple(mover for mover in movers if mover.ratio > 1),
        faster=tuple(mover for mover in reversed(movers) if mover.ratio < 1),
        joined=tuple(sorted(cluster_ids - rows_before.keys())) if previous_rows else (),
        left=tuple(sorted(rows_before.keys() - cluster_ids)),
    )


def summarize_budgets(row: Row, before: Mapping[str, Row]) -> ClusterBudgets:
    """Return the cluster's budgets in the week, compared with the week before."""
    row_before = before.get(row["cluster_id"])
    return ClusterBudgets(
        row["cluster_id"],
        row["bad_minutes"] or 0,
        None if row_before is None else row_before["bad_minutes"],
        row["latency_budget_left_minutes"],
        availability_left_minutes(row),
        find_main_cause(row),
    )


def find_main_cause(row: Row) -> str | None:
    """Return the cause of most bad minutes in the cluster's week; of equal causes the first by name."""
    causes = dict(row["causes"] or ())
    return min(causes, key=lambda cause: (-causes[cause], cause), default=None)


def _movers(rows: Iterable[Row], rows_before: Mapping[str, Row]) -> list[LatencyMover]:
    """Return the clusters whose latency changed, the most slowed down first.

    Weeks with low coverage do not count.
    """
    movers = []
    for row in rows:
        row_before = rows_before.get(row["cluster_id"])
        if row_before is None or not (_is_counted(row) and _is_counted(row_before)):
            continue
        before_us, now_us = row_before["latency_p99_us"], row["latency_p99_us"]
        if abs(now_us - before_us) >= max(MIN_CHANGE * before_us, MIN_CHANGE_US):
            movers.append(LatencyMover(row["cluster_id"], before_us, now_us, find_main_cause(row)))
    return sorted(movers, key=lambda mover: (-mover.ratio, mover.cluster_id))


def _is_counted(row: Row) -> bool:
    return bool(
        row["latency_p99_us"] and row["coverage"] is not None and row["coverage"] >= MIN_FLEET_COVERAGE
    )
