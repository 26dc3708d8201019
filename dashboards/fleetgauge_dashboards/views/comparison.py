"""Compare cluster-weeks: the clusters of two groups, or each cluster before and after."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from statistics import median
from typing import Any, Literal

from fleetgauge_core.slo.comparison import MedianDifference, compare_groups, compare_pairs
from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_dashboards.views.comparison_metrics import METRICS

Row = Mapping[str, Any]
ComparisonVerdict = Literal["better", "worse", "not told apart", "too few to tell"]

#: The names of the two sides when clusters are compared with themselves.
BEFORE_AND_AFTER = ("before", "after")


@dataclass(frozen=True, slots=True)
class ClusterComparison:
    """Two sides, a value of each cluster on each side, and what the difference shows.

    In a comparison of groups a cluster is on one side, before and after it is on both. Clusters in
    ``left_out`` had no value that counts.
    """

    sides: tuple[str, str]
    weeks: tuple[date, ...]
    values: Mapping[str, Mapping[str, float]]
    left_out: Collection[str]
    difference: MedianDifference
    verdict: ComparisonVerdict


def compare_cluster_groups(
    rows: Iterable[Row],
    metric: str,
    weeks: Sequence[date],
    members: Mapping[str, Collection[str]],
    random: Random,
) -> ClusterComparison | None:
    """Compare the clusters of two groups, each at the median of its ``weeks``.

    None while a group has no value.
    """
    counted_rows = [
        row for row in rows if row["week"] in weeks and row["closed"] and _is_counted(row, metric)
    ]
    values_by_cluster: dict[str, list[float]] = {}
    for row in counted_rows:
        values_by_cluster.setdefault(row["cluster_id"], []).append(row[metric])
    a, b = members
    values = {
        side: {
            cluster_id: median(values_by_cluster[cluster_id])
            for cluster_id in sorted(members[side])
            if cluster_id in values_by_cluster
        }
        for side in members
    }
    if not (values[a] and values[b]):
        return None
    difference = compare_groups(list(values[a].values()), list(values[b].values()), random)
    left_out = sorted(
        {cluster_id for side in members.values() for cluster_id in side} - values_by_cluster.keys()
    )
    return ClusterComparison((a, b), tuple(weeks), values, left_out, difference, _verdict(difference, metric))


def compare_before_and_after(
    rows: Iterable[Row],
    metric: str,
    weeks: tuple[date, date],
    members: Collection[str] | None,
    random: Random,
) -> ClusterComparison | None:
    """Compare clusters that have both weeks, open weeks included; None if no cluster has.

    ``members`` None stands for all clusters.
    """
    side_of = dict(zip(weeks, BEFORE_AND_AFTER, strict=True))
    values: dict[str, dict[str, float]] = {side: {} for side in BEFORE_AND_AFTER}
    considered = set(members or ())
    for row in rows:
        side, cluster_id = side_of.get(row["week"]), row["cluster_id"]
        if side and (members is None or cluster_id in members):
            considered.add(cluster_id)
            if _is_counted(row, metric):
                values[side][cluster_id] = row[metric]
    compared = sorted(values["before"].keys() & values["after"].keys())
    if not compared:
        return None
    paired = {
        side: {cluster_id: values_of_side[cluster_id] for cluster_id in compared}
        for side, values_of_side in values.items()
    }
    difference = compare_pairs(
        [(paired["before"][cluster_id], paired["after"][cluster_id]) for cluster_id in compared], random
    )
    return ClusterComparison(
        BEFORE_AND_AFTER,
        weeks,
        paired,
        sorted(considered - set(compared)),
        difference,
        _verdict(difference, metric),
    )


def _is_counted(row: Row, metric: str) -> bool:
    """Return whether the week counts, as in the fleet's quantiles: with low coverage it does not."""
    return row["coverage"] is not None and row["coverage"] >= MIN_FLEET_COVERAGE and row[metric] is not None


def _verdict(difference: MedianDifference, metric: str) -> ComparisonVerdict:
    if difference.has_few_clusters:
        return "too few to tell"
    if not difference.is_significant:
        return "not told apart"
    return "worse" if (difference.difference > 0) is METRICS[metric] else "better"
