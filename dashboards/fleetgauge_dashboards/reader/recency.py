"""Find how far the newest minutes reach, and how many of them were measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE

COVERAGE_WINDOW = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class Recency:
    """Each cluster's newest measured minute, and the coverage of the last hour of data.

    ``measured`` and ``expected`` count broker-minutes of the hour that ends with the newest measured minute.
    ``expected_of_silent`` has, by cluster, the broker-minutes expected of clusters without a row in that
    hour.
    """

    newest: Mapping[str, datetime]
    measured: int
    expected: int
    expected_of_silent: Mapping[str, int] = field(default_factory=dict)

    @property
    def until(self) -> datetime | None:
        """Return the end of the newest measured minute; None while nothing was measured."""
        return max(self.newest.values()) + MINUTE if self.newest else None


NOTHING_MEASURED = Recency({}, 0, 0)


def compute_recency(recent: pa.Table) -> Recency:
    """Compute the recency from all clusters' minutes of the newest days."""
    measured = recent.filter(pc.greater(pc.fill_null(recent["brokers_measured"], 0), 0))
    rows = measured.group_by("cluster_id").aggregate([("minute", "max")]).to_pylist()
    newest = {row["cluster_id"]: row["minute_max"].astimezone(UTC) for row in rows}
    if not newest:
        return NOTHING_MEASURED
    until = max(newest.values()) + MINUTE
    return Recency(
        newest, *_coverage(recent, until), _expected_of_silent_clusters(recent, until - COVERAGE_WINDOW)
    )


def _expected_of_silent_clusters(recent: pa.Table, since: datetime) -> dict[str, int]:
    newest = recent.group_by("cluster_id").aggregate([("minute", "max")])
    silent = newest.filter(pc.less(newest["minute_max"], pa.scalar(since)))["cluster_id"]
    rows = recent.filter(pc.is_in(recent["cluster_id"], silent.combine_chunks())).sort_by("minute")
    names = ("cluster_id", "brokers_expected")
    brokers = dict(zip(*(rows[name].to_pylist() for name in names), strict=True))
    return {cluster: (expected or 0) * (COVERAGE_WINDOW // MINUTE) for cluster, expected in brokers.items()}


def _coverage(recent: pa.Table, until: datetime) -> tuple[int, int]:
    """Return measured and expected broker-minutes of the hour before ``until``.

    A missing row counts as unmeasured, with as many brokers expected as the cluster's last row says: a silent
    cluster must not look healthy.
    """
    per_cluster: dict[str, list[tuple[datetime, int, int]]] = {}
    since = until - COVERAGE_WINDOW
    for row in recent.filter(pc.greater_equal(recent["minute"], pa.scalar(since))).to_pylist():
        at = row["minute"].astimezone(UTC)
        if at < until:
            counts = (at, row["brokers_expected"] or 0, row["brokers_measured"] or 0)
            per_cluster.setdefault(row["cluster_id"], []).append(counts)
    measured_sum = expected_sum = 0
    for rows in per_cluster.values():
        first, last = min(rows), max(rows)
        minutes_after_last = int((until - MINUTE - last[0]) / MINUTE)
        gaps_between = int((last[0] - first[0]) / MINUTE) + 1 - len(rows)
        measured_sum += sum(measured for _, _, measured in rows)
        expected_sum += sum(expected for _, expected, _ in rows) + last[1] * (
            minutes_after_last + gaps_between
        )
    return measured_sum, expected_sum
