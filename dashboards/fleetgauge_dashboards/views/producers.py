"""Whether producers of each vantage could go on in a cluster, and whether it could take the load."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.recovery_freshness import newest_of_each, was_told

_KEY = ("vantage", "cluster_id")


@dataclass(frozen=True, slots=True)
class ProducersNow:
    """Tracers of a vantage in its newest minute, which ended at ``until``."""

    vantage: str
    cluster_id: str
    until: datetime
    now: bool
    sent: int
    acknowledged: int
    ack_p99_ms: int | None
    records_per_s: float | None
    capacity_records_per_s: float | None

    @property
    def get_through(self) -> bool | None:
        """None where nobody knows: a lone tracer may be on its way."""
        if self.acknowledged:
            return True
        return False if self.sent > 1 else None

    @property
    def was_tried(self) -> bool:
        """Without tracers there is no vantage; what is produced is known all the same."""
        return bool(self.vantage)


def producers_now(rows: pa.Table, now: datetime) -> tuple[ProducersNow, ...]:
    """By vantage and cluster."""
    return tuple(
        ProducersNow(
            row["vantage"],
            row["cluster_id"],
            row["minute"] + MINUTE,
            was_told(row["minute"], now),
            row["sent"] or 0,
            row["acknowledged"] or 0,
            row["ack_p99_ms"],
            row["records_per_s"],
            row["capacity_records_per_s"],
        )
        for row in newest_of_each(rows, _KEY)
    )


def headroom(
    producers: Sequence[ProducersNow], there: Collection[str], both: Collection[str]
) -> float | None:
    """The share of its capacity that is left once the clusters ``there`` carry the load of ``both`` regions.

    None where a capacity, or what is produced, is not known. Vantages see the same load: it counts once.
    """
    loads: dict[str, float | None] = {}
    capacities: dict[str, float | None] = {}
    for one in producers:
        if one.cluster_id in both:
            loads[one.cluster_id] = _larger(loads.get(one.cluster_id), one.records_per_s)
        if one.cluster_id in there:
            known = capacities.get(one.cluster_id)
            capacities[one.cluster_id] = known or one.capacity_records_per_s
    load, capacity = _sum(loads.values()), _sum(capacities.values())
    return None if load is None or not capacity else 1 - load / capacity


def _larger(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _sum(values: Collection[float | None]) -> float | None:
    """None where one of them is not known, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
