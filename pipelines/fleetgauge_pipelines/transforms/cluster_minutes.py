"""Cluster-minutes from broker-minutes: the worst broker's levels, and those of all brokers pooled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetgauge_core.slo.causes import CauseInterval, find_cause
from fleetgauge_pipelines.transforms.broker_minutes import BrokerMinutes, Levels, Masked, mask_all
from fleetgauge_pipelines.transforms.expected_brokers import ExpectedMinutes, find_rows
from fleetgauge_pipelines.transforms.lists import Flags, Ints, Lists, pair, rank_of, unpair
from fleetgauge_pipelines.transforms.records import to_time


@dataclass(frozen=True, slots=True)
class ClusterMinutes:
    """A row for each row of ExpectedMinutes; values are masked where nothing was measured."""

    latency_p99_us: Masked
    latency_worst_home: Masked
    latency_p99_censored_us: Masked
    latency_pooled_p99_us: Masked
    availability: Masked
    availability_worst_home: Masked
    availability_pooled: Masked
    leader_ack_p99_us: Masked
    leader_worst_broker: Masked
    brokers_expected: Ints
    brokers_measured: Ints
    attempted: Ints
    succeeded: Ints
    cause: tuple[str | None, ...]


def compute_cluster_minutes(
    expected: ExpectedMinutes,
    brokers: BrokerMinutes,
    levels: Levels,
    objectives_us: Sequence[int],
    intervals: Sequence[Sequence[CauseInterval]],
) -> ClusterMinutes:
    """Return the levels of each expected minute.

    ``objectives_us`` and ``intervals`` are each cluster's latency objective, and what may explain its bad
    minutes; ``brokers`` has no retired one.
    """
    rows = find_rows(expected, brokers)
    client = _ByMinute.of(rows, brokers.is_measured & ~brokers.is_leader, len(expected))
    leader = _ByMinute.of(rows, brokers.is_measured & brokers.is_leader, len(expected))
    attempted, succeeded = client.sum(brokers.attempted), client.sum(brokers.succeeded)
    latency, latency_home = client.find_worst(levels.latency_p99_us, brokers.broker, np.maximum)
    availability, home = client.find_worst(levels.availability, brokers.broker, np.minimum)
    leader_latency, leader_worst = leader.find_worst(levels.latency_p99_us, brokers.broker, np.maximum)
    censored, _ = client.find_worst(levels.latency_p99_censored_us, brokers.broker, np.maximum)
    late = np.bincount(rows[brokers.is_agent_late & ~brokers.is_leader], minlength=len(expected)) > 0
    return ClusterMinutes(
        latency_p99_us=latency,
        latency_worst_home=latency_home,
        latency_p99_censored_us=censored,
        latency_pooled_p99_us=_find_pooled_p99(brokers.e2e_us, client, succeeded),
        availability=availability,
        availability_worst_home=home,
        availability_pooled=np.ma.MaskedArray(succeeded / np.maximum(attempted, 1), attempted == 0),
        leader_ack_p99_us=leader_latency,
        leader_worst_broker=leader_worst,
        brokers_expected=expected.counts,
        brokers_measured=client.sum(np.ones(len(brokers), np.int64)),
        attempted=attempted,
        succeeded=succeeded,
        cause=_find_causes(expected, brokers, levels, client, censored, late, objectives_us, intervals),
    )


@dataclass(frozen=True, slots=True)
class _ByMinute:
    """Some broker-minutes by the cluster's minute that they belong to."""

    selected: Ints
    """Positions of the broker-minutes, in order."""
    minute: Ints
    """The row of each one's minute, ascending."""
    minutes: int

    @classmethod
    def of(cls, rows: Ints, where: Flags, minutes: int) -> "_ByMinute":
        selected = np.flatnonzero(where)
        return cls(selected, rows[selected], minutes)

    @property
    def begins(self) -> Ints:
        """Where each minute with a broker-minute begins."""
        is_first = np.ones(len(self.minute), np.bool_)
        is_first[1:] = self.minute[1:] != self.minute[:-1]
        return np.flatnonzero(is_first)

    def sum(self, counts: Ints) -> Ints:
        """Return the sum of each minute."""
        sums = np.zeros(self.minutes, np.int64)
        if len(self.selected):
            begins = self.begins
            sums[self.minute[begins]] = np.add.reduceat(counts[self.selected], begins)
        return sums

    def find_worst(self, values: Masked, broker: Ints, worse: np.ufunc) -> tuple[Masked, Masked]:
        """Return the worst value of each minute, and the lowest ID of the brokers that have it."""
        present = self._where(~np.ma.getmaskarray(values)[self.selected])
        data = np.ma.getdata(values)
        worst = mask_all(self.minutes, data.dtype)
        homes = mask_all(self.minutes)
        if len(present.selected):
            of_present, begins = data[present.selected], present.begins
            worst[present.minute[begins]] = worse.reduceat(of_present, begins)
            has_worst = present._where(of_present == np.ma.getdata(worst)[present.minute])
            # Within a minute broker-minutes are in the order of the brokers.
            firsts = has_worst.begins
            homes[has_worst.minute[firsts]] = broker[has_worst.selected[firsts]]
        return worst, homes

    def _where(self, flags: Flags) -> "_ByMinute":
        return _ByMinute(self.selected[flags], self.minute[flags], self.minutes)


def _find_pooled_p99(samples: Lists, client: _ByMinute, succeeded: Ints) -> Masked:
    """Return the p99 of all brokers' samples of each minute; ``succeeded`` is their number."""
    lists, minute = samples.take(client.selected), client.minute
    # The p99 of n numbers is the wanted-th largest. Each broker's share of these are its samples from the
    # threshold on: at least as many as are wanted are not below it, and hardly more; only these are sorted.
    wanted = np.where(succeeded > 0, succeeded - rank_of(99, succeeded) + 1, 0)
    brokers = np.bincount(minute, minlength=client.minutes)
    share = np.minimum(-(-wanted // np.maximum(brokers, 1))[minute], lists.sizes)
    reached = np.bincount(minute, weights=share, minlength=client.minutes) >= wanted
    lowest, has_sample = lists.at(lists.sizes - share + 1)
    threshold = np.full(client.minutes, _HIGHEST)
    np.minimum.at(threshold, minute[has_sample], lowest[has_sample])
    threshold[~reached] = -_HIGHEST
    largest = lists.last(lists.count_at_least(threshold[minute]))
    values, rows = largest.flatten()
    _, ordered = unpair(np.sort(pair(minute[rows], values.astype(np.int64))))
    ends = np.cumsum(np.bincount(minute[rows], minlength=client.minutes))
    p99 = mask_all(client.minutes)
    with_samples = np.flatnonzero(succeeded > 0)
    p99[with_samples] = ordered[(ends - wanted)[with_samples]]
    return p99


_HIGHEST = 2**31


def _find_causes(
    expected: ExpectedMinutes,
    brokers: BrokerMinutes,
    levels: Levels,
    client: _ByMinute,
    censored_us: Masked,
    is_agent_late: Flags,
    objectives_us: Sequence[int],
    intervals: Sequence[Sequence[CauseInterval]],
) -> tuple[str | None, ...]:
    """Return the cause of each bad minute, None for the others: the rule of slo.causes."""
    objective = np.asarray(objectives_us, np.int64)
    causes: list[str | None] = [None] * len(expected)
    is_over = np.ma.getdata(levels.latency_p99_censored_us) > objective[brokers.cluster]
    over = client._where(is_over[client.selected])
    for number in np.flatnonzero(np.ma.filled(censored_us > objective[expected.cluster], False)).tolist():
        lo, hi = np.searchsorted(over.minute, [number, number + 1])
        causes[number] = find_cause(
            to_time(int(expected.minute[number])),
            brokers.broker[over.selected[lo:hi]].tolist(),
            bool(is_agent_late[number]),
            intervals[expected.cluster[number]],
        )
    return tuple(causes)
