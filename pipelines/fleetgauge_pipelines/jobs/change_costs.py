"""What each change cost: gold/change_costs, computed once some minutes after the end of a change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.change_causes import RecordedChange, list_change_windows
from fleetgauge_core.slo.change_cost import (
    CONTROL_WEEKS,
    MINUTES_PER_WEEK,
    ChangeCost,
    LossSeries,
    estimate_cost,
)
from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR
from fleetgauge_core.tables import CHANGE_COSTS, CLUSTER_MINUTES
from fleetgauge_pipelines.io.lake import Lake

#: By then the records of the last minute have arrived, unless an agent could not send them.
_DUE_AFTER = timedelta(minutes=15)
#: A batch must not wait for the costs of a long history.
MAX_IN_BATCH = 50
_COLUMNS = ("minute", "latency_p99_censored_us", "availability_pooled")
_KEY = ("cluster_id", "change_id")
_BUDGET_SHARES = {
    "bad_minutes": "latency_budget_share",
    "availability_spent_minutes": "availability_budget_share",
}
_MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class _Window:
    """When a change may have had an effect on a cluster."""

    change: RecordedChange
    cluster_id: str
    first: datetime
    end: datetime

    @property
    def minutes(self) -> range:
        """The minutes that it touches, numbered since 1970."""
        return range(int(self.first.timestamp()) // 60, ceil(self.end.timestamp() / 60))


class ChangeCostWriter:
    """Adds the costs of changes that have ended; a change that was amended is computed again."""

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._segments = {cluster.id: cluster.segments for cluster in fleet.clusters}
        self._known: dict[tuple[str, str], tuple[datetime, datetime]] = {}

    def open(self) -> None:
        """Read the costs of which changes are stored."""
        rows = self._lake.table_store(CHANGE_COSTS).rows(columns=(*_KEY, "starts", "ends"))
        self._known = {(row["cluster_id"], row["change_id"]): (row["starts"], row["ends"]) for row in rows}

    def update(self, changes: Iterable[RecordedChange], clock: datetime, limit: int | None) -> int:
        """Compute the costs that are due, the latest first and at most ``limit``; return how many changed."""
        due = sorted(self._find_due(changes, clock), key=lambda window: window.end, reverse=True)[:limit]
        by_cluster: dict[str, list[_Window]] = defaultdict(list)
        for window in due:
            by_cluster[window.cluster_id].append(window)
        rows = [
            row
            for cluster_id, windows in by_cluster.items()
            for row in self._compute_costs(self._clusters[cluster_id], windows, clock)
        ]
        if not rows:
            return 0
        table = self._lake.table_store(CHANGE_COSTS)
        ids = sorted({row["change_id"] for row in rows})
        keys = {(row["cluster_id"], row["change_id"]) for row in rows}
        stored = table.rows(pc.field("change_id").isin(ids))
        others = [row for row in stored if (row["cluster_id"], row["change_id"]) not in keys]
        changed = table.replace([*rows, *others], stored, {"change_id": ids})
        self._known |= {(row["cluster_id"], row["change_id"]): (row["starts"], row["ends"]) for row in rows}
        return changed

    def _find_due(self, changes: Iterable[RecordedChange], clock: datetime) -> Iterable[_Window]:
        for change in changes:
            for cluster_id, first, end in list_change_windows(change, self._segments):
                is_known = self._known.get((cluster_id, change.change_id)) == (change.starts, change.ends)
                if cluster_id in self._clusters and not is_known and end + _DUE_AFTER <= clock:
                    yield _Window(change, cluster_id, first, end)

    def _compute_costs(
        self, cluster: Cluster, windows: Sequence[_Window], clock: datetime
    ) -> Iterable[dict[str, Any]]:
        minutes = self._read_minutes(cluster.id, windows)
        numbers = _as_numbers(minutes["minute"])
        censored_us = minutes["latency_p99_censored_us"].to_numpy()
        is_measured = ~np.isnan(censored_us.astype(np.float64))
        is_bad = censored_us[is_measured] > self._fleet.latency_objective_us(cluster)
        bad = LossSeries.build(numbers[is_measured], is_bad)
        availability = minutes["availability_pooled"].to_numpy()
        has_availability = ~np.isnan(availability)
        spent = LossSeries.build(numbers[has_availability], 1 - availability[has_availability])
        budgets = {
            "bad_minutes": MINUTES_PER_WEEK / LATENCY_BUDGET_DIVISOR,
            "availability_spent_minutes": MINUTES_PER_WEEK
            * (1 - self._fleet.objective(cluster).availability),
        }
        for window in windows:
            costs = {
                "bad_minutes": estimate_cost(bad, window.minutes),
                "availability_spent_minutes": estimate_cost(spent, window.minutes),
            }
            yield _build_row(window, costs, budgets, clock)

    def _read_minutes(self, cluster_id: str, windows: Sequence[_Window]) -> pa.Table:
        lo = min(window.first for window in windows) - timedelta(weeks=CONTROL_WEEKS, minutes=1)
        hi = max(window.end for window in windows)
        where = (
            (pc.field("day") >= lo.date())
            & (pc.field("day") <= hi.date())
            & (pc.field("cluster_id") == cluster_id)
            & (pc.field("minute") >= lo)
            & (pc.field("minute") < hi)
        )
        return self._lake.table_store(CLUSTER_MINUTES).frame(where, (*CLUSTER_MINUTES.key, *_COLUMNS[1:]))


def _as_numbers(minutes: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return times as minutes since 1970."""
    numbers: np.ndarray[Any, np.dtype[np.int64]] = minutes.cast(pa.int64()).to_numpy() // _MINUTE_US
    return numbers


def _build_row(
    window: _Window, costs: Mapping[str, ChangeCost | None], budgets: Mapping[str, float], clock: datetime
) -> dict[str, Any]:
    change, bad = window.change, costs["bad_minutes"]
    row: dict[str, Any] = {
        "cluster_id": window.cluster_id,
        "change_id": change.change_id,
        "kind": change.kind,
        "broker_id": change.broker_id,
        "starts": change.starts,
        "ends": change.ends,
        "minutes_measured": bad.measured_minutes if bad else 0,
        "control_weeks": len(bad.controls) if bad else 0,
        "computed_at": clock.astimezone(UTC),
    }
    for name, cost in costs.items():
        row |= {
            name: cost.observed if cost else None,
            f"{name}_expected": cost.expected if cost else None,
            f"{name}_low": cost.low if cost else None,
            f"{name}_high": cost.high if cost else None,
            f"{name}_verdict": cost.verdict if cost else "unknown",
            _BUDGET_SHARES[name]: cost.cost / budgets[name] if cost else None,
        }
    return row
