"""Whether a broker is slower than its peers and than it was itself, however well it answers.

Motivation: a slow broker fails no probe, and slows the homes that it follows as well; its own leader leg
tells it apart.

Approach: per vantage, one window after the other is judged against the median of the other brokers and
against the broker's own last hour. It is named when slow for a minute as most vantages see it, or slow in
its tail in half the windows of three minutes; it is well again after a while without a slow probe.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median_low
from typing import NamedTuple

from fleetgauge_core.contract import Leg, LegPulse, ProbePulse
from fleetgauge_core.detection.presence import most
from fleetgauge_core.detection.thresholds import Thresholds
from fleetgauge_core.slo.quantile import quantile

_OWN_PERCENTILE = 90


class Pace(StrEnum):
    """What one window of a leader leg shows."""

    WELL = "well"
    TAIL = "tail"
    """Some of its probes were slow."""
    SLOW = "slow"
    """More than half of them were."""


class Took(NamedTuple):
    """A p50 and a p99, in µs."""

    p50_us: int
    p99_us: int


#: Block by block what a broker took while it was well, of the last hour that it was.
History = tuple[Took, ...]


class Window(NamedTuple):
    """What one pulse says of one broker's leader leg, and what was usual then; None where nobody knows."""

    took: Took
    peers: Took | None
    own: Took | None
    best_p50_us: int | None
    """The least of the broker so far, until its own hour is known."""

    def pace(self, limits: Thresholds) -> Pace:
        least_p50_us = min(limits.slow_p50_us, limits.alone_p50_us)
        if self.took.p50_us <= least_p50_us and self.took.p99_us <= limits.slow_p99_us:
            # As nearly all are, and a fleet has thousands in each second.
            return Pace.WELL
        usual = [one for one in (self.peers, self.own) if one]
        p50_floor_us = self._p50_floor_us(limits)
        if self.took.p50_us > max([p50_floor_us, *(limits.slow_times * one.p50_us for one in usual)]):
            return Pace.SLOW
        if self.took.p99_us > max([limits.slow_p99_us, *(limits.slow_times * one.p99_us for one in usual)]):
            return Pace.TAIL
        return Pace.WELL

    def _p50_floor_us(self, limits: Thresholds) -> int:
        """Who is not known yet may always have taken so long; the best that it has shown says otherwise."""
        if self.own:
            return limits.slow_p50_us
        if self.peers is None:
            return limits.alone_p50_us
        if self.best_p50_us is None:
            return limits.new_p50_us
        return max(limits.slow_p50_us, limits.slow_times * self.best_p50_us)

    def evidence(self) -> dict[str, int | None]:
        return {
            f"{prefix}{name}": getattr(took, name) if took else None
            for prefix, took in (("", self.took), ("peers_", self.peers), ("own_", self.own))
            for name in ("p50_us", "p99_us")
        }


class Seen(NamedTuple):
    """One broker from one vantage: its last window and how the latest rounds went.

    Of a broker that is well its rounds become its history: ``recent`` ones, then blocks of them.
    """

    at: datetime
    window: Window
    round_at: datetime
    rounds: tuple[Pace, ...]
    well_since: datetime | None
    recent: tuple[Took, ...]
    history: History
    usual: Took | None
    """By that history."""

    def is_slow(self, limits: Thresholds) -> bool:
        return self.rounds[-limits.slow_rounds :] == (Pace.SLOW,) * limits.slow_rounds

    @property
    def rounds_with_slow_probes(self) -> int:
        return len(self.rounds) - self.rounds.count(Pace.WELL)

    def is_well(self, for_so_long: timedelta) -> bool:
        return self.well_since is not None and self.at - self.well_since >= for_so_long

    def evidence(self) -> dict[str, object]:
        return {**self.window.evidence(), "rounds": [pace.value for pace in self.rounds]}


@dataclass(frozen=True, slots=True)
class Slowness:
    """Whether a broker is held to be slow, only in its tail or not, and what each vantage saw of it."""

    named: bool = False
    tail: bool = False
    seen: Mapping[str, Seen] = field(default_factory=dict)
    remembered: Mapping[str, History] = field(default_factory=dict)
    """By vantage, of those that were not heard yet."""

    def history(self, vantage: str) -> History:
        """As seen from there; empty where nobody knows yet."""
        seen = self.seen.get(vantage)
        return seen.history if seen else self.remembered.get(vantage, ())

    def used_to(self, vantage: str, history: History) -> "Slowness":
        """As an earlier watch learnt it."""
        return replace(self, remembered={**self.remembered, vantage: history})

    def undated(self) -> "Slowness":
        """As it stands, and with what it usually takes."""
        learnt = {vantage: one.history for vantage, one in self.seen.items()}
        return Slowness(self.named, self.tail, remembered={**self.remembered, **learnt})

    def restored(self, *, named: bool, slow: str) -> "Slowness":
        """As an earlier watch said; ``slow`` is that of its evidence."""
        return replace(self, named=named, tail=named and slow == "some")

    def after(
        self, vantage: str, at: datetime, measured: "Measured | None", limits: Thresholds
    ) -> "Slowness":
        """One pulse later. Where nothing was measured nothing is said: a broker that is down is not slow."""
        if measured is None:
            return self
        seen = {
            **self.seen,
            vantage: _see(self.seen.get(vantage), self.history(vantage), at, measured, limits),
        }
        fresh = [one for one in seen.values() if limits.are_fresh(one.at, at)]
        if self.named:
            well = limits.tail_well if self.tail else limits.well
            if not most(one.is_well(well) for one in fresh):
                return replace(self, seen=seen)
            # The slow rounds have had their say.
            rested = {one: what._replace(rounds=()) for one, what in seen.items()}
            return replace(self, named=False, tail=False, seen=rested)
        slow = most(one.is_slow(limits) for one in fresh)
        tail = _has_a_tail([one.rounds_with_slow_probes for one in fresh], limits)
        return Slowness(slow or tail, tail and not slow, seen, self.remembered)

    def evidence(self) -> dict[str, object]:
        """Whether most probes are slow or some, and by vantage what they took."""
        by_vantage = {vantage: one.evidence() for vantage, one in sorted(self.seen.items())}
        return {"slow": "some" if self.tail else "most", "vantages": by_vantage}


def _has_a_tail(rounds_with_slow_probes: Sequence[int], limits: Thresholds) -> bool:
    """By the rounds of all vantages together, for each sees a sample; one path alone is not the broker."""
    enough = limits.tail_rounds * len(rounds_with_slow_probes)
    return sum(rounds_with_slow_probes) >= enough and most(
        rounds >= limits.tail_rounds_each for rounds in rounds_with_slow_probes
    )


class Measured(NamedTuple):
    """What one pulse says of a broker, and the median of the others; None without others."""

    took: Took
    peers: Took | None


def measured(pulse: ProbePulse, limits: Thresholds) -> dict[int, Measured]:
    """Of each broker with enough successes on its leader leg."""
    legs = {one.broker_id: one.leg(Leg.LEADER) for one in pulse.brokers}
    took = {broker_id: one for broker_id, leg in legs.items() if (one := _took(leg, limits))}
    p50s_us = sorted(one.p50_us for one in took.values())
    p99s_us = sorted(one.p99_us for one in took.values())

    def others(one: Took) -> Took | None:
        if len(took) == 1:
            return None
        return Took(_median_of_others(p50s_us, one.p50_us), _median_of_others(p99s_us, one.p99_us))

    return {broker_id: Measured(one, others(one)) for broker_id, one in took.items()}


def _took(leg: LegPulse | None, limits: Thresholds) -> Took | None:
    if leg is None or leg.succeeded < limits.least_probes or leg.p50_us is None or leg.p99_us is None:
        return None
    return Took(leg.p50_us, leg.p99_us)


def _median_of_others(ascending: Sequence[int], own: int) -> int:
    """The lower one of an even number."""
    middle = (len(ascending) - 2) // 2
    return ascending[middle if middle < bisect_left(ascending, own) else middle + 1]


def _see(before: Seen | None, history: History, at: datetime, one: Measured, limits: Thresholds) -> Seen:
    usual = before.usual if before else _usual(history, limits)
    best_p50_us = None if usual else _best_p50_us(before.recent if before else (), history, limits)
    window = Window(one.took, one.peers, usual, best_p50_us)
    pace = window.pace(limits)
    well_since = at if pace is Pace.WELL else None
    if before is None or not limits.are_fresh(before.at, at):
        return _rounded(Seen(at, window, at, (), well_since, (), history, usual), pace, limits)
    _, _, round_at, rounds, was_well_since, recent, history, _ = before
    well_since = well_since and (was_well_since or well_since)
    seen = Seen(at, window, round_at, rounds, well_since, recent, history, usual)
    return _rounded(seen, pace, limits) if at - round_at >= limits.round else seen


def _rounded(seen: Seen, pace: Pace, limits: Thresholds) -> Seen:
    """A window that shares no probe with the last one that counted. Only well ones make history."""
    at, window, _, rounds, well_since, recent, history, usual = seen
    if pace is Pace.WELL:
        recent = (*recent, window.took)
    if len(recent) == limits.history_block:
        block = Took(median_low(one.p50_us for one in recent), median_low(one.p99_us for one in recent))
        recent, history = (), (*history, block)[-limits.history_blocks :]
        usual = _usual(history, limits)
    return Seen(at, window, at, (*rounds, pace)[-limits.tail_rounds_of :], well_since, recent, history, usual)


def _best_p50_us(recent: Sequence[Took], history: History, limits: Thresholds) -> int | None:
    """The least that a broker took in a round or a block of them; None before it was well for a minute."""
    if not history and len(recent) < limits.slow_rounds:
        return None
    return min(one.p50_us for one in (*history, *recent))


def _usual(history: Sequence[Took], limits: Thresholds) -> Took | None:
    """What a broker took in its slower minutes (p90) of the last hour that it was well; None before that."""
    if len(history) < limits.history_blocks:
        return None
    p50_us = quantile(_OWN_PERCENTILE, sorted(one.p50_us for one in history))
    p99_us = quantile(_OWN_PERCENTILE, sorted(one.p99_us for one in history))
    return Took(p50_us, p99_us) if p50_us is not None and p99_us is not None else None
