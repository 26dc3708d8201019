"""Whether a broker is slower than its peers and than it used to be, although its probes succeed.

Motivation: a slow broker fails no probe, and it also slows the partitions that it follows; only its own
leader leg identifies it.

Approach: per vantage, consecutive windows are compared with the median of the other brokers and with the
broker's own last hour. The broker is DEGRADED if it is slow for a minute as most vantages see it, or slow in
its tail in half of the windows of three minutes; the alert clears after a while without a slow probe, and
after a longer one if it was not the first in a quarter of an hour.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median_low
from typing import NamedTuple

from fleetgauge_core.contract import Leg, LegPulse, ProbePulse
from fleetgauge_core.detection.broker_liveness import is_majority
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds
from fleetgauge_core.slo.quantile import quantile

_BASELINE_PERCENTILE = 90
#: Of an episode; it may last for days.
_ALERTS_KEPT = 99


class LatencyClass(StrEnum):
    """How many of a window's probes were slow."""

    NORMAL = "well"
    TAIL = "tail"
    """Some of them."""
    SLOW = "slow"
    """More than half of them."""


class LatencyQuantiles(NamedTuple):
    """The median and the 99th percentile of acknowledgement latencies, in microseconds."""

    p50_us: int
    p99_us: int


#: A broker's latencies while they were normal: medians of blocks of rounds, over the latest hour of them.
LatencyHistory = tuple[LatencyQuantiles, ...]


class LatencyWindow(NamedTuple):
    """The latencies of a broker's leader leg in one pulse, and what they are compared with.

    ``peers``: the medians of the other brokers, None without other brokers; ``own``: the broker's baseline,
    None before it has an hour of history.
    """

    measured: LatencyQuantiles
    peers: LatencyQuantiles | None
    own: LatencyQuantiles | None
    best_p50_us: int | None
    """The broker's lowest p50 so far, used until it has a baseline."""

    def classify(self, limits: Thresholds) -> LatencyClass:
        """Return whether the window is slow against peers, baseline and the fixed floors."""
        lowest_floor_us = min(limits.slow_p50_us, limits.alone_p50_us)
        if self.measured.p50_us <= lowest_floor_us and self.measured.p99_us <= limits.slow_p99_us:
            # The usual case; a large fleet sends thousands of windows per second.
            return LatencyClass.NORMAL
        references = [reference for reference in (self.peers, self.own) if reference]
        slow_p50s_us = (limits.slow_times * reference.p50_us for reference in references)
        if self.measured.p50_us > max([self._p50_floor_us(limits), *slow_p50s_us]):
            return LatencyClass.SLOW
        slow_p99s_us = (limits.slow_times * reference.p99_us for reference in references)
        if self.measured.p99_us > max([limits.slow_p99_us, *slow_p99s_us]):
            return LatencyClass.TAIL
        return LatencyClass.NORMAL

    def _p50_floor_us(self, limits: Thresholds) -> int:
        """Return the p50 up to which no window is slow.

        A broker without a baseline may always have been as slow, unless its best p50 shows otherwise.
        """
        if self.own:
            return limits.slow_p50_us
        if self.peers is None:
            return limits.alone_p50_us
        if self.best_p50_us is None:
            return limits.new_p50_us
        return max(limits.slow_p50_us, limits.slow_times * self.best_p50_us)

    def evidence(self) -> dict[str, int | None]:
        """Return the measured quantiles and, with a prefix, those of the peers and of the baseline."""
        return {
            f"{prefix}{name}": getattr(quantiles, name) if quantiles else None
            for prefix, quantiles in (("", self.measured), ("peers_", self.peers), ("own_", self.own))
            for name in ("p50_us", "p99_us")
        }


class VantageLatency(NamedTuple):
    """One broker as one vantage measures it: its latest window and the classes of the latest rounds.

    A round is a window that shares no probe with the previous round. Normal rounds become history: first they
    are ``recent``, then a block of them becomes one value of ``history``.
    """

    at: datetime
    window: LatencyWindow
    round_at: datetime
    rounds: tuple[LatencyClass, ...]
    normal_since: datetime | None
    recent: tuple[LatencyQuantiles, ...]
    history: LatencyHistory
    baseline: LatencyQuantiles | None
    """Derived from the history; None while that is shorter than an hour."""

    def is_slow(self, limits: Thresholds) -> bool:
        """Return whether all of the latest rounds were slow."""
        return self.rounds[-limits.slow_rounds :] == (LatencyClass.SLOW,) * limits.slow_rounds

    @property
    def rounds_with_slow_probes(self) -> int:
        """How many of the kept rounds had at least one slow probe."""
        return len(self.rounds) - self.rounds.count(LatencyClass.NORMAL)

    def has_been_normal_for(self, duration: timedelta) -> bool:
        """Return whether every window of the given duration was normal."""
        return self.normal_since is not None and self.at - self.normal_since >= duration

    def evidence(self) -> dict[str, object]:
        """Return the latest window and the classes of the kept rounds."""
        return {**self.window.evidence(), "rounds": [round_class.value for round_class in self.rounds]}


class PulseLatency(NamedTuple):
    """A broker's latencies in one pulse, and the medians of the other brokers; None without others."""

    measured: LatencyQuantiles
    peers: LatencyQuantiles | None


@dataclass(frozen=True, slots=True)
class BrokerSlowness:
    """Whether a broker is DEGRADED, and what each vantage measures of it.

    ``is_tail_only``: only some of its probes are slow, not most of them. ``episode``: when its
    latest alerts opened, each within a quarter of an hour of the next.
    """

    is_degraded: bool = False
    is_tail_only: bool = False
    episode: tuple[datetime, ...] = ()
    latencies: Mapping[str, VantageLatency] = field(default_factory=dict)
    """By vantage."""
    restored_histories: Mapping[str, LatencyHistory] = field(default_factory=dict)
    """By vantage, for those that have not sent a pulse yet."""

    def history_from(self, vantage: str) -> LatencyHistory:
        """Return the history as the vantage measured it; empty if there is none."""
        latency = self.latencies.get(vantage)
        return latency.history if latency else self.restored_histories.get(vantage, ())

    def with_restored_history(self, vantage: str, history: LatencyHistory) -> "BrokerSlowness":
        """Return the slowness with a history that an earlier watch stored."""
        return replace(self, restored_histories={**self.restored_histories, vantage: history})

    def drop_timestamps(self) -> "BrokerSlowness":
        """Return the state and the histories without anything that has a time."""
        histories = {vantage: latency.history for vantage, latency in self.latencies.items()}
        return BrokerSlowness(
            self.is_degraded,
            self.is_tail_only,
            restored_histories={**self.restored_histories, **histories},
        )

    def with_restored_finding(self, *, is_open: bool, slow: str, at: datetime) -> "BrokerSlowness":
        """Return the slowness after a stored finding; ``slow`` is that key of its evidence."""
        has_opened = is_open and not self.is_degraded
        return replace(
            self,
            is_degraded=is_open,
            is_tail_only=is_open and slow == "some",
            episode=self._extend_episode(at, DEFAULT_THRESHOLDS) if has_opened else self.episode,
        )

    def add_pulse(
        self, vantage: str, at: datetime, pulse_latency: PulseLatency | None, limits: Thresholds
    ) -> "BrokerSlowness":
        """Return the slowness after one more pulse of a vantage.

        Without a measured latency nothing changes: a broker that is down is not slow.
        """
        if pulse_latency is None:
            return self
        before, history = self.latencies.get(vantage), self.history_from(vantage)
        latencies = {
            **self.latencies,
            vantage: _add_window(before, history, at, pulse_latency, limits),
        }
        fresh = [latency for latency in latencies.values() if limits.is_fresh(latency.at, at)]
        if self.is_degraded:
            clear_after = self._find_time_to_clear(limits)
            if not is_majority(latency.has_been_normal_for(clear_after) for latency in fresh):
                return replace(self, latencies=latencies)
            # The slow rounds of a cleared alert must not raise the next one.
            cleared = {source: latency._replace(rounds=()) for source, latency in latencies.items()}
            return replace(self, is_degraded=False, is_tail_only=False, latencies=cleared)
        slow = is_majority(latency.is_slow(limits) for latency in fresh)
        tail = _has_slow_tail([latency.rounds_with_slow_probes for latency in fresh], limits)
        episode = self._extend_episode(at, limits) if slow or tail else self.episode
        return BrokerSlowness(slow or tail, tail and not slow, episode, latencies, self.restored_histories)

    def evidence(self) -> dict[str, object]:
        """Return whether most probes are slow or some, the episode's alerts, and latencies by vantage."""
        by_vantage = {vantage: latency.evidence() for vantage, latency in sorted(self.latencies.items())}
        return {
            "slow": "some" if self.is_tail_only else "most",
            "episode_alerts": len(self.episode),
            "vantages": by_vantage,
        }

    def _find_time_to_clear(self, limits: Thresholds) -> timedelta:
        """Return how long most vantages must see a degraded broker without slow probes."""
        if len(self.episode) >= limits.recurrences:
            return limits.recurrence_well
        return limits.tail_well if self.is_tail_only else limits.well

    def _extend_episode(self, at: datetime, limits: Thresholds) -> tuple[datetime, ...]:
        """Return the episode with an alert that opens, or a new one if the latest alert is long ago."""
        continues = self.episode and at - self.episode[-1] < limits.recurs_within
        return (*self.episode[-_ALERTS_KEPT:], at) if continues else (at,)


def _has_slow_tail(rounds_with_slow_probes: Sequence[int], limits: Thresholds) -> bool:
    """Return whether the tail is slow, by the rounds of all vantages: each vantage sees only a sample.

    Most vantages must see some of it, because a slow path of one vantage is not a slow broker.
    """
    threshold = limits.tail_rounds * len(rounds_with_slow_probes)
    return sum(rounds_with_slow_probes) >= threshold and is_majority(
        rounds >= limits.tail_rounds_each for rounds in rounds_with_slow_probes
    )


def measure_latencies(pulse: ProbePulse, limits: Thresholds) -> dict[int, PulseLatency]:
    """Return the latencies of each broker with enough successes on its leader leg."""
    legs = {broker.broker_id: broker.leg_pulse(Leg.LEADER) for broker in pulse.brokers}
    latencies = {
        broker_id: quantiles for broker_id, leg in legs.items() if (quantiles := _quantiles_of(leg, limits))
    }
    p50s_us = sorted(quantiles.p50_us for quantiles in latencies.values())
    p99s_us = sorted(quantiles.p99_us for quantiles in latencies.values())

    def median_of_peers(own: LatencyQuantiles) -> LatencyQuantiles | None:
        if len(latencies) == 1:
            return None
        return LatencyQuantiles(_median_without(p50s_us, own.p50_us), _median_without(p99s_us, own.p99_us))

    return {
        broker_id: PulseLatency(quantiles, median_of_peers(quantiles))
        for broker_id, quantiles in latencies.items()
    }


def _quantiles_of(leg: LegPulse | None, limits: Thresholds) -> LatencyQuantiles | None:
    if leg is None or leg.succeeded < limits.least_probes or leg.p50_us is None or leg.p99_us is None:
        return None
    return LatencyQuantiles(leg.p50_us, leg.p99_us)


def _median_without(ascending: Sequence[int], own: int) -> int:
    """Return the median of the values without ``own``; the lower of two in the middle."""
    middle = (len(ascending) - 2) // 2
    return ascending[middle if middle < bisect_left(ascending, own) else middle + 1]


def _add_window(
    before: VantageLatency | None,
    history: LatencyHistory,
    at: datetime,
    pulse_latency: PulseLatency,
    limits: Thresholds,
) -> VantageLatency:
    baseline = before.baseline if before else _baseline_of(history, limits)
    best_p50_us = None if baseline else _best_p50_us(before.recent if before else (), history, limits)
    window = LatencyWindow(pulse_latency.measured, pulse_latency.peers, baseline, best_p50_us)
    latency_class = window.classify(limits)
    normal_since = at if latency_class is LatencyClass.NORMAL else None
    if before is None or not limits.is_fresh(before.at, at):
        restarted = VantageLatency(at, window, at, (), normal_since, (), history, baseline)
        return _add_round(restarted, latency_class, limits)
    _, _, round_at, rounds, was_normal_since, recent, history, _ = before
    normal_since = normal_since and (was_normal_since or normal_since)
    latency = VantageLatency(at, window, round_at, rounds, normal_since, recent, history, baseline)
    return _add_round(latency, latency_class, limits) if at - round_at >= limits.round else latency


def _add_round(latency: VantageLatency, latency_class: LatencyClass, limits: Thresholds) -> VantageLatency:
    """Return the latency with its window counted as a round; only normal rounds become history."""
    at, window, _, rounds, normal_since, recent, history, baseline = latency
    if latency_class is LatencyClass.NORMAL:
        recent = (*recent, window.measured)
    if len(recent) == limits.history_block:
        block = LatencyQuantiles(
            median_low(quantiles.p50_us for quantiles in recent),
            median_low(quantiles.p99_us for quantiles in recent),
        )
        recent, history = (), (*history, block)[-limits.history_blocks :]
        baseline = _baseline_of(history, limits)
    rounds = (*rounds, latency_class)[-limits.tail_rounds_of :]
    return VantageLatency(at, window, at, rounds, normal_since, recent, history, baseline)


def _best_p50_us(
    recent: Sequence[LatencyQuantiles], history: LatencyHistory, limits: Thresholds
) -> int | None:
    """Return the lowest p50 of a round or a block; None before a minute of normal rounds."""
    if not history and len(recent) < limits.slow_rounds:
        return None
    return min(quantiles.p50_us for quantiles in (*history, *recent))


def _baseline_of(history: Sequence[LatencyQuantiles], limits: Thresholds) -> LatencyQuantiles | None:
    """Return the p90 of an hour of history, that is of the slower blocks; None for a shorter history."""
    if len(history) < limits.history_blocks:
        return None
    p50_us = quantile(_BASELINE_PERCENTILE, sorted(quantiles.p50_us for quantiles in history))
    p99_us = quantile(_BASELINE_PERCENTILE, sorted(quantiles.p99_us for quantiles in history))
    return LatencyQuantiles(p50_us, p99_us) if p50_us is not None and p99_us is not None else None
