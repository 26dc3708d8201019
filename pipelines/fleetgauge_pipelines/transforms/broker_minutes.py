"""Broker-minutes: the records of each broker, leg and minute, pooled over all vantages that were on time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.levels import CENSORED_LATENCY_US, MIN_MEASURED_ATTEMPTS
from fleetgauge_pipelines.transforms.lists import Flags, Ints, Lists, rank_of, unique_pairs
from fleetgauge_pipelines.transforms.records import SUMS, FailureCounts, Records

#: Counts of several records may add up to more than the table's int columns hold.
_INT_MAX = 2**31 - 1

Masked = np.ma.MaskedArray[Any, np.dtype[Any]]


def mask_all(rows: int, type_: np.dtype[Any] | type[np.int64] = np.int64) -> Masked:
    """Return a column in which no row has a value yet."""
    return np.ma.MaskedArray(np.zeros(rows, type_), mask=True)


@dataclass(frozen=True, slots=True)
class BrokerMinutes:
    """A row for each broker, leg and minute with a record, ordered by cluster, minute, broker and leg.

    Counts and ascending samples are of on-time vantages only. The leader leg has no ``e2e_us``.
    """

    cluster: Ints
    minute: Ints
    broker: Ints
    is_leader: Flags
    sums: NDArray[np.int64]
    """A row of numbers for each name of SUMS."""
    ack_us: Lists
    e2e_us: Lists
    vantages: Ints
    is_agent_late: Flags
    led_by: Lists
    failures: FailureCounts

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def attempted(self) -> Ints:
        """The number of probes."""
        attempted: Ints = self.sums[SUMS.index("attempted")]
        return attempted

    @property
    def is_measured(self) -> Flags:
        """Whether enough probes were attempted."""
        return self.attempted >= MIN_MEASURED_ATTEMPTS

    @property
    def succeeded(self) -> Ints:
        """The number of samples: of consumed records on the client leg, of acknowledgements on the other."""
        return np.where(self.is_leader, self.ack_us.sizes, self.e2e_us.sizes)

    def sample_at(self, rank: Ints) -> tuple[Ints, Flags]:
        """Return the latency at a 1-based rank of each row, and where there is one; elsewhere it is 0."""
        (acks, has_ack), (e2e, has_e2e) = self.ack_us.at(rank), self.e2e_us.at(rank)
        return np.where(self.is_leader, acks, e2e), np.where(self.is_leader, has_ack, has_e2e)


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of broker-minutes; masked where a minute is not measured, or has no sample."""

    availability: Masked
    latency_p50_us: Masked
    latency_p99_us: Masked
    latency_p99_censored_us: Masked
    latency_max_us: Masked
    ack_p99_us: Masked


def pool_records(records: Records) -> BrokerMinutes:
    """Pool the records of each broker, leg and minute."""
    groups = _Groups.of(records)
    on_time = records.is_on_time
    cluster, minute, broker, is_leader = groups.key
    return BrokerMinutes(
        cluster=cluster,
        minute=minute,
        broker=broker,
        is_leader=is_leader.astype(np.bool_),
        sums=np.add.reduceat((records.sums * on_time)[:, groups.order], groups.begins, axis=1),
        ack_us=groups.pool(records.ack_us.empty_all_but(on_time)),
        e2e_us=groups.pool(records.e2e_us.empty_all_but(on_time)),
        vantages=groups.count_distinct(records.vantage, on_time),
        is_agent_late=np.logical_or.reduceat(~on_time[groups.order], groups.begins),
        led_by=groups.merge_sets(records.led_by),
        failures=groups.sum_failures(records.failures, on_time),
    )


@dataclass(frozen=True, slots=True)
class _Groups:
    """Records grouped by cluster, minute, broker and leg; ``order`` has those of a group side by side."""

    order: Ints
    begins: Ints
    """Where each group begins in ``order``."""
    sizes: Ints
    group: Ints
    """The group of each record."""
    key: NDArray[np.int64]
    """Cluster, minute, broker and leg of each group."""

    @classmethod
    def of(cls, records: Records) -> "_Groups":
        order = np.lexsort((records.is_leader, records.broker, records.minute, records.cluster))
        key = np.stack([records.cluster, records.minute, records.broker, records.is_leader])[:, order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.any(key[:, 1:] != key[:, :-1], axis=0)
        begins = np.flatnonzero(is_first)
        sizes = np.diff(np.append(begins, len(order)))
        group = np.empty(len(order), np.int64)
        group[order] = np.repeat(np.arange(len(begins)), sizes)
        return cls(order, begins, sizes, group, key[:, begins])

    def pool(self, samples: Lists) -> Lists:
        """Return the ascending samples of each group; those of a single record ascend already."""
        firsts, is_shared = samples.take(self.order[self.begins]), self.sizes > 1
        if not is_shared.any():
            return firsts
        rows = self.order[np.repeat(is_shared, self.sizes)]
        number = np.cumsum(is_shared) - 1
        pooled = samples.take(rows).pool(number[self.group[rows]], int(is_shared.sum()))
        return firsts.replace(np.flatnonzero(is_shared), pooled)

    def merge_sets(self, lists: Lists) -> Lists:
        """Return the distinct numbers of each group, ascending."""
        return lists.pool(self.group, len(self.begins)).distinct()

    def count_distinct(self, codes: Ints, counted: Flags) -> Ints:
        """Return how many different codes the counted records of each group have."""
        groups, _ = unique_pairs(self.group[counted], codes[counted])
        return np.bincount(groups, minlength=len(self.begins)).astype(np.int64)

    def sum_failures(self, failures: FailureCounts, counted: Flags) -> FailureCounts:
        """Return how often each failure occurred in each group, by group and code."""
        kept = counted[failures.row]
        keys = self.group[failures.row[kept]] * max(1, len(failures.codes)) + failures.code[kept]
        distinct, positions = np.unique(keys, return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, positions, failures.count[kept])
        row, code = np.divmod(distinct, max(1, len(failures.codes)))
        return FailureCounts(row, code, np.minimum(sums, _INT_MAX), failures.codes)


def compute_levels(minutes: BrokerMinutes) -> Levels:
    """Return the levels of each broker-minute: the rule of slo.levels.compute_broker_minute_levels."""
    measured, attempted, succeeded = minutes.is_measured, minutes.attempted, minutes.succeeded

    def mask(values: NDArray[Any], present: Flags) -> Masked:
        return np.ma.MaskedArray(values, ~(measured & present))

    everywhere = np.ones(len(minutes), np.bool_)
    return Levels(
        mask(succeeded / np.maximum(attempted, 1), everywhere),
        mask(*minutes.sample_at(rank_of(50, succeeded))),
        mask(*minutes.sample_at(rank_of(99, succeeded))),
        mask(*_censored_p99(minutes)),
        mask(*minutes.sample_at(succeeded)),
        mask(*minutes.ack_us.at(rank_of(99, minutes.ack_us.sizes))),
    )


def _censored_p99(minutes: BrokerMinutes) -> tuple[Ints, Flags]:
    """Return the p99 of all attempts, of which the failed ones count at the deadline."""
    attempted, succeeded = minutes.attempted, minutes.succeeded
    failures, rank = attempted - succeeded, rank_of(99, attempted)
    deadline = np.where(
        minutes.is_leader, CENSORED_LATENCY_US[Leg.LEADER.value], CENSORED_LATENCY_US[Leg.CLIENT.value]
    )
    within = _count_within(minutes, deadline)
    is_failure = (rank > within) & (rank <= within + failures)
    value, present = minutes.sample_at(np.where(rank <= within, rank, rank - failures))
    return np.where(is_failure, deadline, value), present | is_failure


def _count_within(minutes: BrokerMinutes, deadline: Ints) -> Ints:
    """Return how many samples are at most the deadline; beyond it are only those that a person accepted."""
    within = minutes.succeeded.copy()
    slowest, _ = minutes.sample_at(within)
    for row in np.flatnonzero(slowest > deadline):
        lists = minutes.ack_us if minutes.is_leader[row] else minutes.e2e_us
        samples = lists.values[lists.starts[row] : lists.starts[row] + lists.sizes[row]]
        within[row] = np.searchsorted(samples, deadline[row], side="right")
    return within


def build_failure_maps(failures: FailureCounts, rows: int) -> pa.MapArray:
    """Return a map from code to count for each row, in the order of the codes."""
    sizes = np.bincount(failures.row, minlength=rows)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    codes = pa.array(failures.codes, pa.string()).take(pa.array(failures.code))
    return pa.MapArray.from_arrays(pa.array(offsets), codes, pa.array(failures.count.astype(np.int32)))
