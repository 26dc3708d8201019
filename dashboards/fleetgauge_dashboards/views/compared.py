"""Which cluster-weeks stand against which: by a label's two values, or before and after."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from statistics import median
from typing import Any, Literal

from fleetgauge_core.slo.comparison import Difference, compare_groups, compare_pairs
from fleetgauge_core.slo.levels import FLEET_COVERAGE

Row = Mapping[str, Any]
Verdict = Literal["better", "worse", "not told apart", "too few to tell"]

#: What can be compared, and whether more of it is worse.
METRICS = {
    "latency_p99_us": True,
    "latency_p99_censored_us": True,
    "availability_ratio": False,
    "availability_p99": False,
    "bad_minutes": True,
    "latency_budget_left_minutes": False,
    "availability_spent_minutes": True,
}


#: The sides of a comparison of clusters with themselves.
PAIRED = ("before", "after")


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, a value of each cluster on each, and what that shows; ``left_out`` clusters had none.

    Side by side, a cluster has one value; before and after, it has both.
    """

    sides: tuple[str, str]
    weeks: tuple[date, ...]
    values: Mapping[str, Mapping[str, float]]
    left_out: Collection[str]
    difference: Difference
    verdict: Verdict


def groups(
    rows: Iterable[Row],
    metric: str,
    weeks: Sequence[date],
    members: Mapping[str, Collection[str]],
    random: Random,
) -> Compared | None:
    """The clusters of two groups, each at its median week; None while a group has no value at all."""
    counted = [row for row in rows if row["week"] in weeks and row["closed"] and _counts(row, metric)]
    of_cluster: dict[str, list[float]] = {}
    for row in counted:
        of_cluster.setdefault(row["cluster_id"], []).append(row[metric])
    a, b = members
    values = {
        side: {one: median(of_cluster[one]) for one in sorted(members[side]) if one in of_cluster}
        for side in members
    }
    if not (values[a] and values[b]):
        return None
    found = compare_groups(list(values[a].values()), list(values[b].values()), random)
    left_out = sorted({one for side in members.values() for one in side} - of_cluster.keys())
    return Compared((a, b), tuple(weeks), values, left_out, found, _verdict(found, metric))


def before_and_after(
    rows: Iterable[Row],
    metric: str,
    weeks: tuple[date, date],
    members: Collection[str] | None,
    random: Random,
) -> Compared | None:
    """Clusters that have both weeks, open ones too; None if none has. ``members`` None: all clusters."""
    side_of = dict(zip(weeks, PAIRED, strict=True))
    values: dict[str, dict[str, float]] = {side: {} for side in PAIRED}
    asked = set(members or ())
    for row in rows:
        side, cluster_id = side_of.get(row["week"]), row["cluster_id"]
        if side and (members is None or cluster_id in members):
            asked.add(cluster_id)
            if _counts(row, metric):
                values[side][cluster_id] = row[metric]
    both = sorted(values["before"].keys() & values["after"].keys())
    if not both:
        return None
    paired = {side: {one: own[one] for one in both} for side, own in values.items()}
    found = compare_pairs([(paired["before"][one], paired["after"][one]) for one in both], random)
    return Compared(PAIRED, weeks, paired, sorted(asked - set(both)), found, _verdict(found, metric))


def _counts(row: Row, metric: str) -> bool:
    """As in the fleet's quantiles: a week that was hardly seen says little."""
    return row["coverage"] is not None and row["coverage"] >= FLEET_COVERAGE and row[metric] is not None


def _verdict(found: Difference, metric: str) -> Verdict:
    if found.means_little:
        return "too few to tell"
    if not found.is_told_apart:
        return "not told apart"
    return "worse" if (found.difference > 0) is METRICS[metric] else "better"
