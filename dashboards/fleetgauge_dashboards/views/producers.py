"""Assess whether producers of each vantage reach a cluster, and whether it has capacity for them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.recovery_freshness import is_current, select_latest_rows

_KEY = ("vantage", "cluster_id")


@dataclass(frozen=True, slots=True)
class ProducerStatus:
    """The tracer records that a vantage produced to a cluster in its newest minute, which ended at ``until``.

    ``is_current`` is False when that minute is too old to describe the present.
    """

    vantage: str
    cluster_id: str
    until: datetime
    is_current: bool
    sent: int
    acknowledged: int
    ack_p99_ms: int | None
    records_per_s: float | None
    capacity_records_per_s: float | None

    @property
    def can_produce(self) -> bool | None:
        """Return whether records were acknowledged; None where unknown.

        A single tracer that is not acknowledged may still be in flight.
        """
        if self.acknowledged:
            return True
        return False if self.sent > 1 else None

    @property
    def has_tracers(self) -> bool:
        """Return whether a vantage sent tracers; rows without a vantage only report the produce rate."""
        return bool(self.vantage)


def latest_producer_statuses(rows: pa.Table, now: datetime) -> tuple[ProducerStatus, ...]:
    """Return the newest status of each vantage and cluster, by name."""
    return tuple(
        ProducerStatus(
            row["vantage"],
            row["cluster_id"],
            row["minute"] + MINUTE,
            is_current(row["minute"], now),
            row["sent"] or 0,
            row["acknowledged"] or 0,
            row["ack_p99_ms"],
            row["records_per_s"],
            row["capacity_records_per_s"],
        )
        for row in select_latest_rows(rows, _KEY)
    )


def compute_headroom(
    producers: Sequence[ProducerStatus], remaining_clusters: Collection[str], all_clusters: Collection[str]
) -> float | None:
    """Return the share of capacity left once the remaining clusters carry the load of all clusters.

    None where a capacity or a produce rate is unknown. Vantages observe the same load, so it counts once.
    """
    loads: dict[str, float | None] = {}
    capacities: dict[str, float | None] = {}
    for status in producers:
        if status.cluster_id in all_clusters:
            loads[status.cluster_id] = _larger(loads.get(status.cluster_id), status.records_per_s)
        if status.cluster_id in remaining_clusters:
            capacity = capacities.get(status.cluster_id)
            capacities[status.cluster_id] = capacity or status.capacity_records_per_s
    load, capacity = _sum(loads.values()), _sum(capacities.values())
    return None if load is None or not capacity else 1 - load / capacity


def _larger(first: float | None, second: float | None) -> float | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _sum(values: Collection[float | None]) -> float | None:
    """Return the sum; None where a value is unknown or there is no value."""
    present = [value for value in values if value is not None]
    return sum(present) if present and len(present) == len(values) else None
