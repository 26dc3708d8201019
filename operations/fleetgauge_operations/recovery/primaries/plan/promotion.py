"""What has to be so before another cluster becomes the primary of a service. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_core.fleet.recovery import Recovery, RecoveryLimits
from fleetgauge_operations.recovery.offsets.lag import lag_of
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.map_case import printable
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.plan.primary_lease import next_epoch
from fleetgauge_operations.recovery.primaries.plan.primary_state import Kind, Reach, Standing
from fleetgauge_operations.recovery.primaries.plan.replica_comparison import (
    Comparison,
    Copied,
    compared,
    mirrored,
)

#: Over which copies are counted.
WINDOW_S = 300.0
#: Groups that a line names.
_NAMED = 5


class Name(StrEnum):
    """Of a precondition, as scripts see it."""

    LABEL = "label"
    """There is one primary, and it is the one that is to be none any more."""
    AGGREGATES = "aggregates"
    """Both clusters hold the same of what both are copies of."""
    INPUT_LAG = "input_lag"
    """What is on its way into the new one is little."""
    GROUPS = "groups"
    """The service's groups could go on there."""
    HEADROOM = "headroom"
    """It could carry what all produce."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """``holds`` None: nobody knows, which counts as if it did not. ``words``: one line."""

    name: Name
    holds: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """Of one service from a cluster to another. ``epoch``: the next one, if the claims could be read."""

    service: str
    pair: Pair
    epoch: int
    preconditions: tuple[Precondition, ...]

    def against(self, despite: Collection[str] = ()) -> tuple[Name, ...]:
        """Those that do not hold, but for those that somebody answers for."""
        return tuple(one.name for one in self.preconditions if not one.holds and one.name not in despite)

    def is_allowed(self, despite: Collection[str] = ()) -> bool:
        return not self.against(despite)


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is weighed, as it was seen at once. ``forecasts`` None: groups cannot be seen.

    ``rates``: records a second that each cluster is given, of those of which it is known.
    """

    standing: Standing
    reach: Reach
    known: Known
    forecasts: Sequence[GroupForecast] | None
    rates: Mapping[str, float]
    now_ms: int


def weighed(
    service: str, groups: str, pair: Pair, recovery: Recovery, seen: Seen, window_s: float = WINDOW_S
) -> Promotion:
    """``groups``: the pattern of the service's own."""
    comparisons = compared(pair, recovery, seen.known, seen.now_ms, window_s)
    preconditions = (
        label(pair, seen.standing, seen.reach),
        aggregates(pair, comparisons, recovery.limits, window_s),
        input_lag(pair.passive, recovery, seen.known, seen.now_ms),
        groups_ready(pair, groups, seen.forecasts),
        headroom(pair.passive, recovery, seen.reach, seen.rates),
    )
    return Promotion(service, pair, next_epoch(seen.standing.claims), preconditions)


def label(pair: Pair, standing: Standing, reach: Reach) -> Precondition:
    """Held too where the last lease is over and was that of a cluster, or region, that is dead."""
    primary, fault = standing.primary, standing.finding
    if primary is None:
        last = reach.clusters(standing.claims[0].primary) if standing.claims else frozenset()
        is_over = fault is not None and fault.kind is Kind.PRIMARY_NONE
        is_gone = is_over and pair.active in last and reach.are_dead(last)
        words = fault.words if fault else "nobody claims it"
        return Precondition(Name.LABEL, is_gone, f"{words}; it does not answer" if is_gone else words)
    if pair.active not in reach.clusters(primary.primary):
        return Precondition(Name.LABEL, False, f"the primary is {primary.words}: not {pair.active}")
    return Precondition(Name.LABEL, True, fault.words if fault else primary.words)


def aggregates(
    pair: Pair, comparisons: Sequence[Comparison], limits: RecoveryLimits, window_s: float = WINDOW_S
) -> Precondition:
    """By how much the two differ in each partition of which both have copies."""
    unlike = [one for one in comparisons if one.apart is not None and one.apart > limits.lost_records]
    if unlike:
        worst = max(unlike, key=lambda one: one.apart or 0)
        return Precondition(Name.AGGREGATES, False, _apart(worst, pair, window_s))
    stale = [one for one in comparisons if one.silent_s is not None and one.silent_s > limits.stale_s]
    if stale:
        worst = max(stale, key=lambda one: one.silent_s or 0)
        words = f"{_where(worst)}: nothing heard of it for {worst.silent_s:.0f} s"
        return Precondition(Name.AGGREGATES, False, words)
    unknown = [one for one in comparisons if one.apart is None or one.silent_s is None]
    if unknown:
        words = f"nothing is known of {len(unknown)} partitions, as {_where(unknown[0])}"
        return Precondition(Name.AGGREGATES, None, words)
    if not comparisons:
        words = f"nothing is known of which both {pair.active} and {pair.passive} are copies"
        return Precondition(Name.AGGREGATES, None, words)
    worst = max(comparisons, key=lambda one: one.apart or 0)
    words = f"the worst of {len(comparisons)} partitions: {_apart(worst, pair, window_s)}"
    return Precondition(Name.AGGREGATES, True, words)


def input_lag(target: str, recovery: Recovery, known: Known, now_ms: int) -> Precondition:
    """All that its sources have and it has not, at most."""
    at_most, unseen = 0, []
    for mirror in recovery.into(target):
        looked_ms = known.looked_ms(mirror.source, target)
        lags = [lag_of(one, now_ms) for one in mirrored(mirror.source, target, recovery, known)]
        if looked_ms is None or now_ms - looked_ms > 1000 * recovery.limits.stale_s or None in lags:
            unseen.append(mirror.source)
        at_most += sum(lag.records_at_most for lag in lags if lag)
    words = f"at most {at_most:,} records on their way into {target}"
    if unseen:
        words = f"nobody knows of {', '.join(unseen)} now; {words}, as last seen"
    if not recovery.into(target):
        return Precondition(Name.INPUT_LAG, None, f"recovery.mirrors has none into {target}")
    if at_most > recovery.limits.lost_records:
        return Precondition(Name.INPUT_LAG, False, f"{words}, beyond {recovery.limits.lost_records:,}")
    return Precondition(Name.INPUT_LAG, None if unseen else True, words)


def groups_ready(pair: Pair, pattern: str, forecasts: Sequence[GroupForecast] | None) -> Precondition:
    """Those that match the whole pattern."""
    if forecasts is None:
        return Precondition(Name.GROUPS, None, f"groups of {pair.active} cannot be seen")
    own = {one.group: one for one in forecasts if re.fullmatch(pattern, one.group)}
    against = [f"{printable(name)} ({', '.join(one.reasons)})" for name, one in own.items() if one.reasons]
    if against:
        more = f" and {len(against) - _NAMED} more" if len(against) > _NAMED else ""
        words = f"{len(against)} of {len(own)} are not ready: {', '.join(sorted(against)[:_NAMED])}{more}"
        return Precondition(Name.GROUPS, False, words)
    if not own:
        words = f"no group of {pair.active} that {pattern} names goes on in {pair.passive}"
        return Precondition(Name.GROUPS, None, words)
    return Precondition(Name.GROUPS, True, f"all {len(own)} could go on in {pair.passive}")


def headroom(target: str, recovery: Recovery, reach: Reach, rates: Mapping[str, float]) -> Precondition:
    """What all of its sources are given, against what it takes, or if nobody has said that, what those of
    its region together do to which producers write.
    """
    sources = {one.source for one in recovery.into(target)}
    near = sorted(reach.around(target) & {one.source for one in recovery.mirrors})
    own = recovery.capacity(target)
    capacity = own if own is not None else _sum(recovery.capacity(one) for one in near)
    whose = target if own is not None else " and ".join(near)
    if capacity is None:
        return Precondition(Name.HEADROOM, None, f"recovery.capacities has none of {target}")
    unmeasured = sorted(sources - rates.keys())
    if unmeasured or not sources:
        return Precondition(
            Name.HEADROOM, None, f"what {', '.join(unmeasured) or target} is given is not known"
        )
    load = sum(rates[one] for one in sources)
    words = f"{load:,.0f} records/s, of {capacity:,.0f} that {whose} takes"
    return Precondition(Name.HEADROOM, load <= capacity, words)


def _apart(one: Comparison, pair: Pair, window_s: float) -> str:
    got = f"{pair.active} has {_had(one.active)}, {pair.passive} {_had(one.passive)}"
    return f"{_where(one)} is {one.apart or 0:,} records apart; of the last {window_s:.0f} s {got}"


def _had(one: Copied | None) -> str:
    return "nobody knows how many" if one is None or one.in_window is None else f"{one.in_window:,}"


def _where(one: Comparison) -> str:
    return f"{printable(one.topic)}/{one.partition} of {one.source}"


def _sum(of: Iterable[float | None]) -> float | None:
    """None where one is not known, or there is none."""
    every = list(of)
    known = [one for one in every if one is not None]
    return sum(known) if known and len(known) == len(every) else None
