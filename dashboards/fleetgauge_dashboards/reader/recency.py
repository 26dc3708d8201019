"""How far the newest minutes reach, and how many of them were measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE

LOOK_BACK = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class Recency:
    """Each cluster's newest measured minute, and broker-minutes of the hour up to the newest one's end.

    ``unheard`` are those expected of clusters without any row in that hour, as their last row says.
    """

    newest: Mapping[str, datetime]
    measured: int
    expected: int
    unheard: Mapping[str, int] = field(default_factory=dict)

    @property
    def until(self) -> datetime | None:
        return max(self.newest.values()) + MINUTE if self.newest else None


NOTHING_MEASURED = Recency({}, 0, 0)


def recency(recent: pa.Table) -> Recency:
    """From all clusters' minutes of the newest days."""
    measured = recent.filter(pc.greater(pc.fill_null(recent["brokers_measured"], 0), 0))
    rows = measured.group_by("cluster_id").aggregate([("minute", "max")]).to_pylist()
    newest = {row["cluster_id"]: row["minute_max"].astimezone(UTC) for row in rows}
    if not newest:
        return NOTHING_MEASURED
    until = max(newest.values()) + MINUTE
    return Recency(newest, *_coverage(recent, until), _unheard(recent, until - LOOK_BACK))


def _unheard(recent: pa.Table, since: datetime) -> dict[str, int]:
    last = recent.group_by("cluster_id").aggregate([("minute", "max")])
    silent = last.filter(pc.less(last["minute_max"], pa.scalar(since)))["cluster_id"]
    rows = recent.filter(pc.is_in(recent["cluster_id"], silent.combine_chunks())).sort_by("minute")
    names = ("cluster_id", "brokers_expected")
    brokers = dict(zip(*(rows[name].to_pylist() for name in names), strict=True))
    return {cluster: (expected or 0) * (LOOK_BACK // MINUTE) for cluster, expected in brokers.items()}


def _coverage(recent: pa.Table, until: datetime) -> tuple[int, int]:
    """A minute without a row was expected as its cluster's last row says: silence is not health."""
    per_cluster: dict[str, list[tuple[datetime, int, int]]] = {}
    since = until - LOOK_BACK
    for row in recent.filter(pc.greater_equal(recent["minute"], pa.scalar(since))).to_pylist():
        at = row["minute"].astimezone(UTC)
        if at < until:
            counts = (at, row["brokers_expected"] or 0, row["brokers_measured"] or 0)
            per_cluster.setdefault(row["cluster_id"], []).append(counts)
    measured_sum = expected_sum = 0
    for rows in per_cluster.values():
        first, last = min(rows), max(rows)
        after_last = int((until - MINUTE - last[0]) / MINUTE)
        inside = int((last[0] - first[0]) / MINUTE) + 1 - len(rows)
        measured_sum += sum(measured for _, _, measured in rows)
        expected_sum += sum(expected for _, expected, _ in rows) + last[1] * (after_last + inside)
    return measured_sum, expected_sum
