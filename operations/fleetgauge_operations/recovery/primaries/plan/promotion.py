"""Preconditions for promoting another cluster to the primary of a service. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_core.fleet.recovery import Recovery, RecoveryLimits
from fleetgauge_operations.recovery.offsets.lag import measure_lag
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.map_case import escape_unprintable
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.plan.precondition_name import PreconditionName
from fleetgauge_operations.recovery.primaries.plan.primary_lease import next_epoch
from fleetgauge_operations.recovery.primaries.plan.primary_state import (
    ClusterReachability,
    PrimaryFindingKind,
    PrimaryState,
)
from fleetgauge_operations.recovery.primaries.plan.replica_comparison import (
    PartitionComparison,
    ReplicaProgress,
    compare_replicas,
    list_mirrored_histories,
)

#: The window in which replicated records are counted.
WINDOW_S = 300.0
#: Maximum number of group ids in one line.
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Precondition:
    """The result of one check; ``holds`` is None if it is unknown, which counts as not met.

    ``explanation`` is one line.
    """

    name: PreconditionName
    holds: bool | None
    explanation: str


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """The promotion of one cluster to the primary of a service, with its checked preconditions.

    ``epoch`` is that of the new lease, higher than all earlier ones.
    """

    service: str
    pair: ClusterPair
    epoch: int
    preconditions: tuple[Precondition, ...]

    def unmet(self, despite: Collection[str] = ()) -> tuple[PreconditionName, ...]:
        """Return the preconditions that are not met, except those that the operator overrides."""
        return tuple(
            precondition.name
            for precondition in self.preconditions
            if not precondition.holds and precondition.name not in despite
        )

    def is_allowed(self, despite: Collection[str] = ()) -> bool:
        """Return whether all preconditions are met or overridden."""
        return not self.unmet(despite)


@dataclass(frozen=True, slots=True)
class PromotionInputs:
    """What the preconditions are checked against, all observed at the same time.

    ``forecasts`` is None if groups cannot be read. ``rates`` maps clusters to the records per second written
    to them, where known.
    """

    primary_state: PrimaryState
    reachability: ClusterReachability
    replication: ReplicationState
    forecasts: Sequence[GroupForecast] | None
    rates: Mapping[str, float]
    now_ms: int


def plan_promotion(
    service: str,
    groups: str,
    pair: ClusterPair,
    recovery: Recovery,
    inputs: PromotionInputs,
    window_s: float = WINDOW_S,
) -> PromotionPlan:
    """Check all preconditions; ``groups`` is the regular expression of the service's consumer groups."""
    comparisons = compare_replicas(pair, recovery, inputs.replication, inputs.now_ms, window_s)
    preconditions = (
        check_label(pair, inputs.primary_state, inputs.reachability),
        check_aggregates(pair, comparisons, recovery.limits, window_s),
        check_input_lag(pair.passive, recovery, inputs.replication, inputs.now_ms),
        check_groups(pair, groups, inputs.forecasts),
        check_headroom(pair.passive, recovery, inputs.reachability, inputs.rates),
    )
    return PromotionPlan(service, pair, next_epoch(inputs.primary_state.leases), preconditions)


def check_label(pair: ClusterPair, state: PrimaryState, reachability: ClusterReachability) -> Precondition:
    """Check that the active cluster, or its region, is the primary.

    This is also met if the last lease was its, has expired, and its clusters are unreachable.
    """
    primary, finding = state.primary, state.finding
    if primary is None:
        last = reachability.clusters(state.leases[0].primary) if state.leases else frozenset()
        is_expired = finding is not None and finding.kind is PrimaryFindingKind.PRIMARY_NONE
        is_gone = is_expired and pair.active in last and reachability.are_unreachable(last)
        explanation = finding.message if finding else "there is no lease"
        if is_gone:
            explanation = f"{explanation}; its clusters are unreachable"
        return Precondition(PreconditionName.LABEL, is_gone, explanation)
    if pair.active not in reachability.clusters(primary.primary):
        explanation = f"the primary is {primary.description}, not {pair.active}"
        return Precondition(PreconditionName.LABEL, False, explanation)
    explanation = finding.message if finding else primary.description
    return Precondition(PreconditionName.LABEL, True, explanation)


def check_aggregates(
    pair: ClusterPair,
    comparisons: Sequence[PartitionComparison],
    limits: RecoveryLimits,
    window_s: float = WINDOW_S,
) -> Precondition:
    """Check how much both clusters differ in each partition that both replicate."""
    different = [
        comparison
        for comparison in comparisons
        if comparison.difference is not None and comparison.difference > limits.lost_records
    ]
    if different:
        worst = max(different, key=lambda comparison: comparison.difference or 0)
        return Precondition(PreconditionName.AGGREGATES, False, _describe_difference(worst, pair, window_s))
    stale = [
        comparison
        for comparison in comparisons
        if comparison.stalled_s is not None and comparison.stalled_s > limits.stale_s
    ]
    if stale:
        worst = max(stale, key=lambda comparison: comparison.stalled_s or 0)
        explanation = f"{_describe_partition(worst)}: no replication progress for {worst.stalled_s:.0f} s"
        return Precondition(PreconditionName.AGGREGATES, False, explanation)
    unknown = [
        comparison
        for comparison in comparisons
        if comparison.difference is None or comparison.stalled_s is None
    ]
    if unknown:
        explanation = (
            f"the replication progress of {len(unknown)} partitions is unknown, for example "
            f"{_describe_partition(unknown[0])}"
        )
        return Precondition(PreconditionName.AGGREGATES, None, explanation)
    if not comparisons:
        explanation = f"no partition is known that both {pair.active} and {pair.passive} replicate"
        return Precondition(PreconditionName.AGGREGATES, None, explanation)
    worst = max(comparisons, key=lambda comparison: comparison.difference or 0)
    explanation = (
        f"largest difference of {len(comparisons)} partitions: {_describe_difference(worst, pair, window_s)}"
    )
    return Precondition(PreconditionName.AGGREGATES, True, explanation)


def check_input_lag(
    target: str, recovery: Recovery, replication: ReplicationState, now_ms: int
) -> Precondition:
    """Check the replication lag of all mirrors into the target, as an upper bound."""
    at_most, unknown = 0, []
    for mirror in recovery.mirrors_into(target):
        inspected_ms = replication.last_inspected_ms(mirror.source, target)
        histories = list_mirrored_histories(mirror.source, target, recovery, replication)
        lags = [measure_lag(history, now_ms) for history in histories]
        is_stale = inspected_ms is None or now_ms - inspected_ms > 1000 * recovery.limits.stale_s
        if is_stale or None in lags:
            unknown.append(mirror.source)
        at_most += sum(lag.records_at_most for lag in lags if lag)
    explanation = f"at most {at_most:,} records are not yet replicated to {target}"
    if unknown:
        explanation = f"the current lag of {', '.join(unknown)} is unknown; when last observed, {explanation}"
    if not recovery.mirrors_into(target):
        return Precondition(PreconditionName.INPUT_LAG, None, f"recovery.mirrors has none into {target}")
    if at_most > recovery.limits.lost_records:
        explanation = f"{explanation}, more than the limit of {recovery.limits.lost_records:,}"
        return Precondition(PreconditionName.INPUT_LAG, False, explanation)
    return Precondition(PreconditionName.INPUT_LAG, None if unknown else True, explanation)


def check_groups(pair: ClusterPair, pattern: str, forecasts: Sequence[GroupForecast] | None) -> Precondition:
    """Check that all groups whose id matches the pattern are ready."""
    if forecasts is None:
        return Precondition(PreconditionName.GROUPS, None, f"the groups of {pair.active} cannot be read")
    own = {forecast.group: forecast for forecast in forecasts if re.fullmatch(pattern, forecast.group)}
    not_ready = [
        f"{escape_unprintable(group)} ({', '.join(forecast.reasons)})"
        for group, forecast in own.items()
        if forecast.reasons
    ]
    if not_ready:
        more = f" and {len(not_ready) - _MAX_NAMED} more" if len(not_ready) > _MAX_NAMED else ""
        names = ", ".join(sorted(not_ready)[:_MAX_NAMED])
        explanation = f"{len(not_ready)} of {len(own)} groups are not ready: {names}{more}"
        return Precondition(PreconditionName.GROUPS, False, explanation)
    if not own:
        explanation = (
            f"no group of {pair.active} that matches {pattern} is configured to resume in {pair.passive}"
        )
        return Precondition(PreconditionName.GROUPS, None, explanation)
    explanation = f"all {len(own)} groups are ready to resume in {pair.passive}"
    return Precondition(PreconditionName.GROUPS, True, explanation)


def check_headroom(
    target: str, recovery: Recovery, reachability: ClusterReachability, rates: Mapping[str, float]
) -> Precondition:
    """Check that the load of all sources of the target is within its capacity.

    If the target has no configured capacity, the sum over the mirrored clusters of its region counts, which
    are those that producers write to.
    """
    sources = {mirror.source for mirror in recovery.mirrors_into(target)}
    mirrored = {mirror.source for mirror in recovery.mirrors}
    neighbours = sorted(reachability.clusters_in_same_region(target) & mirrored)
    own = recovery.capacity(target)
    capacity = own if own is not None else _sum_known(recovery.capacity(cluster) for cluster in neighbours)
    owner = target if own is not None else " and ".join(neighbours)
    if capacity is None:
        return Precondition(PreconditionName.HEADROOM, None, f"recovery.capacities has none for {target}")
    unmeasured = sorted(sources - rates.keys())
    if unmeasured or not sources:
        explanation = f"the load of {', '.join(unmeasured) or target} is unknown"
        return Precondition(PreconditionName.HEADROOM, None, explanation)
    load = sum(rates[source] for source in sources)
    explanation = f"{load:,.0f} records/s of a capacity of {capacity:,.0f} records/s in {owner}"
    return Precondition(PreconditionName.HEADROOM, load <= capacity, explanation)


def _describe_difference(comparison: PartitionComparison, pair: ClusterPair, window_s: float) -> str:
    active, passive = _describe_replicated(comparison.active), _describe_replicated(comparison.passive)
    return (
        f"{_describe_partition(comparison)} differs by {comparison.difference or 0:,} records; of the last "
        f"{window_s:.0f} s {pair.active} has {active}, {pair.passive} {passive}"
    )


def _describe_replicated(progress: ReplicaProgress | None) -> str:
    if progress is None or progress.in_window is None:
        return "an unknown number"
    return f"{progress.in_window:,}"


def _describe_partition(comparison: PartitionComparison) -> str:
    return f"{escape_unprintable(comparison.topic)}/{comparison.partition} of {comparison.source}"


def _sum_known(numbers: Iterable[float | None]) -> float | None:
    """Return the sum, or None if a number is unknown or there is none."""
    all_numbers = list(numbers)
    known = [number for number in all_numbers if number is not None]
    return sum(known) if known and len(known) == len(all_numbers) else None
