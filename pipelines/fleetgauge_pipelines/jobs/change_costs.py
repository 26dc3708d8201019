"""What each change cost: gold/change_costs, computed some minutes after the end of a change."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.causes import shift
from fleetgauge_core.slo.change_causes import RecordedChange, list_change_windows
from fleetgauge_core.slo.change_cost import (
    CONTROL_WEEKS,
    MINUTES_PER_WEEK,
    ChangeCost,
    LossSeries,
    estimate_cost,
)
from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR
from fleetgauge_core.slo.minute_range import MinuteRange
from fleetgauge_core.tables import CHANGE_COSTS, CLUSTER_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.silver_bounds import SilverBounds

#: By then the records of the last minute have arrived, unless an agent could not send them.
_DUE_AFTER = timedelta(minutes=15)
#: A batch must not wait for the costs of a long history.
MAX_IN_BATCH = 25
_COLUMNS = ("latency_p99_censored_us", "availability_pooled")
_MINUTE = timedelta(minutes=1)
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

    @property
    def last_minute(self) -> datetime:
        """The last minute that it touches."""
        return datetime.fromtimestamp(60 * (self.minutes.stop - 1), UTC)

    def overlaps(self, range_: MinuteRange) -> bool:
        """Return whether it touches a minute of the range."""
        is_apart = range_.last < self.first - _MINUTE or range_.first > self.last_minute
        return range_.cluster_id == self.cluster_id and not is_apart


class _Computed(NamedTuple):
    """What of a change its stored costs rest on."""

    kind: str
    broker_id: int | None
    starts: datetime
    ends: datetime | None
    clusters: frozenset[str]

    @classmethod
    def of(cls, change: RecordedChange, windows: Iterable[_Window]) -> Self:
        """Return what the costs of these windows of a change rest on."""
        clusters = frozenset(window.cluster_id for window in windows)
        return cls(change.kind, change.broker_id, change.starts, change.ends, clusters)


class ChangeCostWriter:
    """Adds the costs of changes that have ended.

    Those of a change that was amended are computed again, and those of minutes that came later.
    """

    def __init__(self, lake: Lake, fleet: Fleet, bounds: SilverBounds) -> None:
        self._lake = lake
        self._fleet = fleet
        self._bounds = bounds
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._segments = {cluster.id: cluster.segments for cluster in fleet.clusters}
        self._known: dict[str, _Computed] = {}

    def open(self) -> None:
        """Read the costs of which changes are stored."""
        names = ("change_id", "cluster_id", "kind", "broker_id", "starts", "ends")
        self._remember(self._lake.table_store(CHANGE_COSTS).rows(columns=names))

    def update(
        self,
        changes: Iterable[RecordedChange],
        touched: Iterable[MinuteRange],
        clock: datetime,
        limit: int | None,
    ) -> int:
        """Compute the costs that are due, the latest first, and return how many rows changed.

        ``touched`` are the minutes that silver has computed since the last call. With a ``limit``, no more
        costs than that are computed, unless a single change concerns more clusters.
        """
        due = self._find_due(changes, list(touched), clock)
        selected: list[_Window] = []
        for windows in sorted(due, key=lambda windows: windows[0].end, reverse=True):
            if limit is not None and selected and len(selected) + len(windows) > limit:
                break
            selected += windows
        return self._store(self._compute_costs(selected, clock)) if selected else 0

    def _find_due(
        self, changes: Iterable[RecordedChange], touched: Sequence[MinuteRange], clock: datetime
    ) -> Iterable[list[_Window]]:
        """Yield the windows of each change of which a cost is missing or has become wrong."""
        for change in changes:
            windows = [
                _Window(change, *window)
                for window in list_change_windows(change, self._segments)
                if window[0] in self._clusters
            ]
            if not windows or shift(max(window.end for window in windows), _DUE_AFTER) > clock:
                continue
            stored = [window for window in windows if self._is_stored(window)]
            is_known = self._known.get(change.change_id) == _Computed.of(change, stored)
            is_touched = any(window.overlaps(range_) for range_ in touched for window in stored)
            if stored and (is_touched or not is_known):
                yield stored

    def _is_stored(self, window: _Window) -> bool:
        """Return whether silver has the last minute of a window."""
        last = window.last_minute
        return self._bounds.clip_to_stored(window.cluster_id, last, last) is not None

    def _store(self, rows: Sequence[dict[str, Any]]) -> int:
        table = self._lake.table_store(CHANGE_COSTS)
        ids = sorted({row["change_id"] for row in rows})
        changed = table.replace(rows, table.rows(pc.field("change_id").isin(ids)), {"change_id": ids})
        self._remember(rows)
        return changed

    def _remember(self, rows: Sequence[Mapping[str, Any]]) -> None:
        clusters: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            clusters[row["change_id"]].add(row["cluster_id"])
        self._known |= {
            change_id: _Computed(
                row["kind"], row["broker_id"], row["starts"], row["ends"], frozenset(clusters[change_id])
            )
            for row in rows
            for change_id in (row["change_id"],)
        }

    def _compute_costs(self, windows: Sequence[_Window], clock: datetime) -> list[dict[str, Any]]:
        by_cluster: dict[str, list[_Window]] = defaultdict(list)
        for window in windows:
            by_cluster[window.cluster_id].append(window)
        minutes = self._read_minutes(windows)
        return [
            row
            for cluster_id, of_cluster in by_cluster.items()
            for row in self._compute_costs_of_cluster(
                self._clusters[cluster_id],
                of_cluster,
                minutes.filter(pc.field("cluster_id") == cluster_id),
                clock,
            )
        ]

    def _compute_costs_of_cluster(
        self, cluster: Cluster, windows: Sequence[_Window], minutes: pa.Table, clock: datetime
    ) -> Iterable[dict[str, Any]]:
        numbers = _as_numbers(minutes["minute"])
        censored_us = minutes["latency_p99_censored_us"].to_numpy().astype(np.float64)
        is_measured = ~np.isnan(censored_us)
        is_bad = censored_us[is_measured] > self._fleet.latency_objective_us(cluster)
        availability = minutes["availability_pooled"].to_numpy().astype(np.float64)
        has_availability = ~np.isnan(availability)
        series = {
            "bad_minutes": LossSeries.build(numbers[is_measured], is_bad),
            "availability_spent_minutes": LossSeries.build(
                numbers[has_availability], 1 - availability[has_availability]
            ),
        }
        budgets = {
            "bad_minutes": MINUTES_PER_WEEK / LATENCY_BUDGET_DIVISOR,
            "availability_spent_minutes": MINUTES_PER_WEEK
            * (1 - self._fleet.objective(cluster).availability),
        }
        for window in windows:
            costs = {name: estimate_cost(losses, window.minutes) for name, losses in series.items()}
            _, measured = series["bad_minutes"].sum(window.minutes.start, len(window.minutes))
            yield _build_row(window, int(measured), costs, budgets, clock)

    def _read_minutes(self, windows: Sequence[_Window]) -> pa.Table:
        weeks = timedelta(weeks=CONTROL_WEEKS, minutes=1)
        lo = min(shift(window.first, -weeks) for window in windows)
        hi = max(window.end for window in windows)
        clusters = sorted({window.cluster_id for window in windows})
        where = (
            (pc.field("day") >= lo.date())
            & (pc.field("day") <= hi.date())
            & pc.field("cluster_id").isin(clusters)
            & (pc.field("minute") >= lo)
            & (pc.field("minute") < hi)
        )
        return self._lake.table_store(CLUSTER_MINUTES).frame(where, (*CLUSTER_MINUTES.key, *_COLUMNS))


def _as_numbers(minutes: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return times as minutes since 1970."""
    numbers: np.ndarray[Any, np.dtype[np.int64]] = minutes.cast(pa.int64()).to_numpy() // _MINUTE_US
    return numbers


def _build_row(
    window: _Window,
    measured: int,
    costs: Mapping[str, ChangeCost | None],
    budgets: Mapping[str, float],
    clock: datetime,
) -> dict[str, Any]:
    change, bad = window.change, costs["bad_minutes"]
    row: dict[str, Any] = {
        "cluster_id": window.cluster_id,
        "change_id": change.change_id,
        "kind": change.kind,
        "broker_id": change.broker_id,
        "starts": change.starts,
        "ends": change.ends,
        "minutes_measured": measured,
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
