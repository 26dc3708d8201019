"""Which cluster spends an error budget too fast: a fold over its minutes, beside that over its pulses.

Motivation: a budget can go without any broker being sick, by a slow network, a quota, a rebalance that never
ends. And a page for a budget that a broker spends, for which somebody was paged minutes ago, is one too many.

Approach: records of the client leg are pooled by minute, as silver has them; a minute is closed when a record
of a later one comes, for by then its own are there. What was lost in the minutes of a finding counts as kept:
whoever is paged is to look for something else. What comes later than that is for the tables alone.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.detection.finding import (
    Chain,
    Finding,
    Phase,
    Subject,
    finding,
)
from fleetgauge_core.fleet.burn_windows import BurnWindow, Severity
from fleetgauge_core.slo.burn import (
    BurnAlert,
    BurnHistory,
    BurnMinute,
    Indicator,
    State,
    WindowBurn,
)
from fleetgauge_core.slo.levels import broker_minute_levels

_MINUTE = timedelta(minutes=1)
#: The longest window of all sets.
REMEMBERED = timedelta(minutes=4320)
#: A fault is there before it is named, slowness for two minutes; and its last probes end after it is cleared.
_NAMED_WITHIN = timedelta(minutes=3)
_ENDS_WITHIN = _MINUTE
_EXPLAINS = (Chain.BROKER_DOWN, Chain.DEGRADED, Chain.CLUSTER_DOWN)

_CHAINS: Mapping[tuple[Indicator, Severity], Chain] = {
    (Indicator.LATENCY, "page"): Chain.LATENCY_BURN,
    (Indicator.LATENCY, "ticket"): Chain.LATENCY_BURN_SLOW,
    (Indicator.AVAILABILITY, "page"): Chain.AVAILABILITY_BURN,
    (Indicator.AVAILABILITY, "ticket"): Chain.AVAILABILITY_BURN_SLOW,
}
BURNS = frozenset(_CHAINS.values())


@dataclass(frozen=True, slots=True)
class Goal:
    """What a cluster is held to, and how; ``retired`` brokers are not expected."""

    latency_us: int
    availability: float
    windows: Sequence[BurnWindow]
    agent_late_us: int
    retired: frozenset[int] = frozenset()


#: By minute, the brokers of which nothing is expected; None among them: of none. As corrections do, it takes
#: them out of measured and expected alike.
Planned = Callable[[datetime], Set[int | None]]


class _Counted(NamedTuple):
    """What a record says of its broker-minute; nothing attempted where its agent was late."""

    broker_id: int
    attempted: int
    success_us: tuple[int, ...]


class _Open(NamedTuple):
    """A minute that is not closed: its records by run and sequence, and who was expected."""

    records: Mapping[tuple[str, int], _Counted] = MappingProxyType({})
    expected: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Budget:
    """One cluster's. ``minutes``: those that are closed, ascending, as long as a window looks back."""

    minutes: tuple[BurnMinute, ...] = ()
    burning: frozenset[Chain] = frozenset()
    open: Mapping[datetime, _Open] = field(default_factory=dict)
    expected: frozenset[int] = frozenset()
    """Who was, in the last minute that had a record."""
    named: Mapping[Subject, datetime] = field(default_factory=dict)
    """Findings that explain losses, and since when."""
    explained: tuple[tuple[datetime, datetime], ...] = ()
    """From when to when those explain them that are over."""
    history: BurnHistory | None = field(default=None, compare=False, repr=False)
    """The minutes, as far as what explains them has not changed since it was made."""

    def explains(self, minute: datetime) -> bool:
        """Whether what was lost in that minute is known to be somebody's fault."""
        return any(since < minute + _MINUTE for since in self.named.values()) or any(
            since < minute + _MINUTE and minute < until for since, until in self.explained
        )


@dataclass(frozen=True, slots=True)
class Budgets:
    """All that is known, by cluster."""

    clusters: Mapping[str, Budget] = field(default_factory=dict)

    def of(self, cluster_id: str) -> Budget:
        return self.clusters.get(cluster_id, Budget())

    def open_findings(self) -> tuple[tuple[Subject, Phase], ...]:
        """What burns now."""
        return tuple(
            (Subject(cluster_id, chain), Phase(chain.value))
            for cluster_id, one in sorted(self.clusters.items())
            for chain in sorted(one.burning)
        )


def _nothing(_: datetime) -> Set[int | None]:
    return frozenset()


def learn(budgets: Budgets, record: ProbeMinute, goal: Goal, planned: Planned = _nothing) -> Budgets:
    """Fold in a record of the past: what burnt then is over, or will be found by the next that is not.

    A record of a closed minute, or of the leader leg, changes nothing.
    """
    before = budgets.of(record.cluster_id)
    if record.leg is not Leg.CLIENT or (before.minutes and record.minute <= before.minutes[-1].minute):
        return budgets
    closed = _closed(_added(before, record, goal), record.minute, goal, planned)
    return _with(budgets, record.cluster_id, closed)


def count(
    budgets: Budgets, record: ProbeMinute, goal: Goal, planned: Planned = _nothing
) -> tuple[Budgets, tuple[Finding, ...]]:
    """Fold one record in, and judge if that closes a minute."""
    after = learn(budgets, record, goal, planned)
    budget = after.of(record.cluster_id)
    if budget.minutes[-1:] == budgets.of(record.cluster_id).minutes[-1:]:
        return after, ()
    judged, found = _judged(record.cluster_id, budget, goal)
    return _with(after, record.cluster_id, judged), found


def close(
    budgets: Budgets, cluster_id: str, minute: BurnMinute, goal: Goal
) -> tuple[Budgets, tuple[Finding, ...]]:
    """Fold in a minute that is closed already, as the tables have it, and judge."""
    budget = budgets.of(cluster_id)
    upto = minute.minute + _MINUTE
    judged, found = _judged(cluster_id, _grown(budget, [minute], upto), goal)
    return _with(budgets, cluster_id, judged), found


def explain(budgets: Budgets, found: Finding) -> Budgets:
    """A finding explains what is lost from a little before it is named until a little after it is cleared."""
    subject = found.subject
    if subject.chain not in _EXPLAINS:
        return budgets
    one, at = budgets.of(subject.cluster_id), found.event.at
    named = dict(one.named)
    if found.names:
        named.setdefault(subject, at - _NAMED_WITHIN)
        return _with(budgets, subject.cluster_id, replace(one, named=named, history=None))
    if subject not in named:
        return budgets
    since, until = named.pop(subject), at + _ENDS_WITHIN
    kept = [span for span in one.explained if span[1] > at - REMEMBERED]
    explained = (*kept, (since, until))
    return _with(budgets, subject.cluster_id, replace(one, named=named, explained=explained, history=None))


def remember_budgets(findings: Iterable[Finding], minutes: Mapping[str, Iterable[BurnMinute]]) -> Budgets:
    """What a watch left behind: its findings, in their order, and each cluster's minutes."""
    known = {cluster_id: Budget(minutes=tuple(sorted(own))) for cluster_id, own in minutes.items()}
    budgets = Budgets(known)
    for one in findings:
        budgets = explain(budgets, one)
        cluster_id, chain = one.subject.cluster_id, one.subject.chain
        if chain in BURNS:
            budget = budgets.of(cluster_id)
            burning = budget.burning | {chain} if one.names else budget.burning - {chain}
            budgets = _with(budgets, cluster_id, replace(budget, burning=burning))
    return budgets


def retire_budgets(
    budgets: Budgets, gone: Callable[[str], bool], now: datetime
) -> tuple[Budgets, tuple[Finding, ...]]:
    """Without the clusters that are not watched any more: what burnt there is over."""
    left = {one: budget for one, budget in budgets.clusters.items() if gone(one)}
    over = tuple(
        finding(Subject(cluster_id, chain), Phase(chain.value), Phase.HEALTHY, now, _evidence(()))
        for cluster_id, budget in left.items()
        for chain in sorted(budget.burning)
    )
    kept = {one: budget for one, budget in budgets.clusters.items() if one not in left}
    return Budgets(kept) if left else budgets, over


def _with(budgets: Budgets, cluster_id: str, one: Budget) -> Budgets:
    return Budgets({**budgets.clusters, cluster_id: one})


def _added(budget: Budget, record: ProbeMinute, goal: Goal) -> Budget:
    known = budget.open.get(record.minute, _Open())
    on_time = record.schedule_lag_p95_us <= goal.agent_late_us
    counted = _Counted(
        record.broker_id, record.attempted if on_time else 0, record.success_us if on_time else ()
    )
    records = {**known.records, (record.run_id, record.sequence): counted}
    expected = (known.expected | {record.broker_id, *record.expected_brokers}) - goal.retired
    return replace(budget, open={**budget.open, record.minute: _Open(records, expected)})


def _closed(budget: Budget, upto: datetime, goal: Goal, planned: Planned) -> Budget:
    """Every minute before ``upto``, also those of which nobody has said anything."""
    start = budget.minutes[-1].minute + _MINUTE if budget.minutes else min(budget.open)
    start = max(start, upto - REMEMBERED)
    if start >= upto:
        return budget
    closed, expected = list[BurnMinute](), budget.expected
    for minute in _minutes(start, upto):
        one = budget.open.get(minute, _Open())
        expected = one.expected or expected
        out = planned(minute)
        closed.append(_burn_minute(minute, one, frozenset() if None in out else expected - out, goal))
    return replace(
        _grown(budget, closed, upto),
        open={minute: one for minute, one in budget.open.items() if minute >= upto},
        expected=expected,
    )


def _grown(budget: Budget, closed: Sequence[BurnMinute], upto: datetime) -> Budget:
    """With these minutes, without those that no window before ``upto`` looks back on any more."""
    start = upto - REMEMBERED
    drop = bisect_left(budget.minutes, start, key=lambda one: one.minute)
    history = budget.history and budget.history.extended(_kept(budget, closed), start)
    return replace(budget, minutes=(*budget.minutes[drop:], *closed), history=history)


def _kept(budget: Budget, minutes: Iterable[BurnMinute]) -> Iterator[BurnMinute]:
    """What was lost with somebody named for it, as if it had not been."""
    return (
        one._replace(bad=False, succeeded=one.attempted) if budget.explains(one.minute) else one
        for one in minutes
    )


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += _MINUTE


def _burn_minute(minute: datetime, one: _Open, expected: frozenset[int], goal: Goal) -> BurnMinute:
    pools: dict[int, list[_Counted]] = defaultdict(list)
    for record in one.records.values():
        pools[record.broker_id].append(record)
    attempted = succeeded = measured = 0
    bad = False
    for broker_id in expected:
        attempts = sum(record.attempted for record in pools[broker_id])
        successes = sorted(us for record in pools[broker_id] for us in record.success_us)
        levels = broker_minute_levels(Leg.CLIENT, attempts, successes)
        if levels:
            measured += 1
            attempted += attempts
            succeeded += len(successes)
            bad = bad or levels.latency_p99_censored_us > goal.latency_us
    return BurnMinute(minute, bad, attempted, succeeded, len(expected), measured)


def _judged(cluster_id: str, budget: Budget, goal: Goal) -> tuple[Budget, tuple[Finding, ...]]:
    end = budget.minutes[-1].minute + _MINUTE
    budget = _counted_up(budget, end)
    alerts = budget.history.alerts(end, goal.windows, goal.availability) if budget.history else ()
    found: list[Finding] = []
    burning = set(budget.burning)
    for (indicator, severity), chain in _CHAINS.items():
        own = [one for one in alerts if one.indicator is indicator and one.window.severity == severity]
        fires = _fires(own, chain in burning)
        if fires != (chain in burning):
            burning ^= {chain}
            before, after = Phase.HEALTHY, Phase(chain.value)
            pair = (before, after) if fires else (after, before)
            found.append(finding(Subject(cluster_id, chain), *pair, end, _evidence(own)))
    return replace(budget, burning=frozenset(burning)), tuple(found)


def _counted_up(budget: Budget, end: datetime) -> Budget:
    """Nothing is of a cluster that loses nothing, which is most of them most of the time."""
    if budget.history:
        return budget
    if not budget.burning and all(not one.bad and one.attempted == one.succeeded for one in budget.minutes):
        return budget
    known = [*_unknown(budget, end - REMEMBERED), *_kept(budget, budget.minutes)]
    return replace(budget, history=BurnHistory(known))


def _unknown(budget: Budget, start: datetime) -> Iterator[BurnMinute]:
    """Minutes before the first that is known, as good ones: a new cluster's day is not its first minute."""
    first = budget.minutes[0]
    for minute in _minutes(start, first.minute):
        yield BurnMinute(minute, False, 1, 1, first.expected, first.measured)


def _fires(alerts: Sequence[BurnAlert], did: bool) -> bool:
    states = {one.state for one in alerts}
    if State.FIRING in states:
        return True
    return did and State.FROZEN in states


def _evidence(alerts: Iterable[BurnAlert]) -> dict[str, object]:
    """By pair of windows: how fast the budget goes over each, 1 being its even pace."""
    return {
        "windows": {
            one.window.name: {"burn": [_times(one.long), _times(one.short)], "factor": one.window.factor}
            for one in alerts
        }
    }


def _times(side: WindowBurn) -> float | None:
    return None if side.burn is None else round(float(side.burn), 2)
