"""Which broker-minutes are expected: silver has a row for each of them, measured or not.

A minute with a record expects the brokers that its agents saw registered; a minute without one expects those
of the last minute with one. So a broker or an agent that stops leaves unmeasured rows instead of missing
ones.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fleetgauge_pipelines.transforms.broker_minutes import BrokerMinutes
from fleetgauge_pipelines.transforms.lists import Flags, Ints, Lists, pair, unique_pairs
from fleetgauge_pipelines.transforms.records import Records


@dataclass(frozen=True, slots=True)
class ClusterSpan:
    """The minutes of a cluster to compute, ``first`` and ``last`` included, counted from 1970.

    ``initial_brokers`` are expected before the first record; None: unknown, and such minutes are left out.
    Retired brokers are never expected.
    """

    cluster_id: str
    first: int
    last: int
    initial_brokers: tuple[int, ...] | None
    retired: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ExpectedMinutes:
    """Each cluster and minute with the brokers that are expected in it, ordered by cluster and minute."""

    cluster: Ints
    minute: Ints
    brokers: Ints
    """Positions in ``sets``."""
    sets: tuple[tuple[int, ...], ...]
    """The different sets of brokers, each ascending."""

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def counts(self) -> Ints:
        """How many brokers each minute expects."""
        return np.array([len(brokers) for brokers in self.sets], np.int64)[self.brokers]


@dataclass(frozen=True, slots=True)
class SilentBrokers:
    """The expected brokers and legs without a record: of each the row of its minute in ExpectedMinutes."""

    row: Ints
    broker: Ints
    is_leader: Flags

    def __len__(self) -> int:
        return len(self.row)


def find_expected_minutes(records: Records, spans: Sequence[ClusterSpan]) -> ExpectedMinutes:
    """Return the minutes of the spans whose brokers are known; ``cluster`` are positions in ``spans``.

    All records lie in the spans.
    """
    order = np.lexsort((records.minute, records.cluster))
    cluster, minute = records.cluster[order], records.minute[order]
    listed, lists = number_lists(records.expected_brokers.take(order))
    begins = _find_begins(cluster, minute)
    numbers = _SetNumbers()
    reported = np.fromiter(
        (
            numbers.number(brokers - spans[of].retired)
            for of, brokers in zip(
                cluster[begins], _list_reported(listed, records.broker[order], begins, lists), strict=True
            )
        ),
        np.int64,
        len(begins),
    )
    ends = np.searchsorted(cluster[begins], np.arange(len(spans) + 1))
    parts = [
        _fill_forward(number, span, minute[begins[lo:hi]], reported[lo:hi], numbers)
        for number, (span, lo, hi) in enumerate(zip(spans, ends, ends[1:], strict=False))
    ]
    clusters, minutes, brokers = np.concatenate(parts, axis=1) if parts else np.empty((3, 0), np.int64)
    return ExpectedMinutes(clusters, minutes, brokers, tuple(numbers.sets))


class _SetNumbers:
    """Numbers different sets of brokers in the order in which they are first seen."""

    def __init__(self) -> None:
        self.sets: list[tuple[int, ...]] = []
        self._numbers: dict[frozenset[int], int] = {}

    def number(self, brokers: Collection[int]) -> int:
        """Return the number of a set."""
        as_set = frozenset(brokers)
        if as_set not in self._numbers:
            self._numbers[as_set] = len(self.sets)
            self.sets.append(tuple(sorted(as_set)))
        return self._numbers[as_set]


def number_lists(lists: Lists) -> tuple[Ints, list[frozenset[int]]]:
    """Return a number for each row, equal where lists are equal, and the brokers in the list of each number.

    Neighbours mostly have the same list, so only a list that differs from the one before it is looked up.
    """
    # In blocks: many records of a large cluster list more brokers than fit into memory several times.
    blocks = [
        _differs_from_previous(lists.take(np.arange(max(0, first - 1), min(first + _BLOCK, len(lists)))))[
            min(first, 1) :
        ]
        for first in range(0, len(lists), _BLOCK)
    ]
    differs = np.concatenate([np.empty(0, np.bool_), *blocks])
    numbers: dict[bytes, int] = {}
    contents: list[frozenset[int]] = []
    of_heads = []
    for row in np.flatnonzero(differs):
        content = lists.values[lists.starts[row] : lists.starts[row] + lists.sizes[row]]
        number = numbers.setdefault(content.tobytes(), len(contents))
        if number == len(contents):
            contents.append(frozenset(content.tolist()))
        of_heads.append(number)
    return np.array(of_heads, np.int64)[np.cumsum(differs) - 1], contents


_BLOCK = 10_000


def _differs_from_previous(lists: Lists) -> Flags:
    """Return which lists are not equal to the one before; the first is not."""
    values, rows = lists.flatten()
    differs = np.ones(len(lists), np.bool_)
    differs[1:] = lists.sizes[1:] != lists.sizes[:-1]
    positions = np.flatnonzero(~differs[rows])
    unlike = values[positions] != values[positions - lists.sizes[rows[positions]]]
    differs[rows[positions[unlike]]] = True
    return differs


def _find_begins(*keys: Ints) -> Ints:
    """Return where a new combination of ordered keys begins."""
    is_first = np.ones(len(keys[0]), np.bool_)
    is_first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(is_first)


def _list_reported(
    listed: Ints, broker: Ints, begins: Ints, lists: Sequence[frozenset[int]]
) -> Iterator[frozenset[int]]:
    """Yield the brokers that the records of each minute list or belong to."""
    numbers, ids = unique_pairs(listed, broker)
    unlisted = {
        (number, id_)
        for number, id_ in zip(numbers.tolist(), ids.tolist(), strict=True)
        if id_ not in lists[number]
    }
    lowest, highest = np.minimum.reduceat(listed, begins), np.maximum.reduceat(listed, begins)
    ends = np.append(begins[1:], len(listed))
    for lo, hi, low, high in zip(begins, ends, lowest.tolist(), highest.tolist(), strict=True):
        brokers = lists[low]
        if low != high:
            brokers = brokers.union(*(lists[number] for number in set(listed[lo:hi].tolist())))
        if unlisted:
            brokers = brokers.union(
                id_
                for number, id_ in set(zip(listed[lo:hi].tolist(), broker[lo:hi].tolist(), strict=True))
                if (number, id_) in unlisted
            )
        yield brokers


def _fill_forward(
    number: int, span: ClusterSpan, recorded: Ints, reported: Ints, numbers: _SetNumbers
) -> Ints:
    """Return cluster, minute and set of brokers of each minute of a span whose brokers are known."""
    minutes = np.arange(span.first, span.last + 1)
    latest = np.searchsorted(recorded, minutes, side="right") - 1
    if span.initial_brokers is None:
        minutes, latest = minutes[latest >= 0], latest[latest >= 0]
        sets = reported[latest]
    else:
        initial = numbers.number(frozenset(span.initial_brokers) - span.retired)
        sets = np.append(reported, initial)[latest]
    return np.stack([np.full(len(minutes), number), minutes, sets])


def find_silent_brokers(expected: ExpectedMinutes, brokers: BrokerMinutes) -> SilentBrokers:
    """Return the expected brokers and legs without a record; ``brokers`` are the minutes' records."""
    rows = find_rows(expected, brokers)
    parts = [_find_silent(expected, rows, brokers, is_leader) for is_leader in (False, True)]
    row, broker = np.concatenate(parts, axis=1)
    return SilentBrokers(row, broker, np.repeat([False, True], [part.shape[1] for part in parts]))


def find_rows(expected: ExpectedMinutes, brokers: BrokerMinutes) -> Ints:
    """Return the row of ``expected`` with the minute of each broker-minute."""
    base = int(expected.minute.min(initial=0))
    width = int(expected.minute.max(initial=0)) - base + 1
    keys = expected.cluster * width + expected.minute - base
    return np.searchsorted(keys, brokers.cluster * width + brokers.minute - base)


def _find_silent(expected: ExpectedMinutes, rows: Ints, brokers: BrokerMinutes, is_leader: bool) -> Ints:
    of_leg = brokers.is_leader == is_leader
    recorded = np.bincount(rows[of_leg], minlength=len(expected))
    incomplete = np.flatnonzero(recorded < expected.counts)
    members = [expected.sets[number] for number in expected.brokers[incomplete].tolist()]
    row = np.repeat(incomplete, [len(ids) for ids in members])
    broker = np.array([id_ for ids in members for id_ in ids], np.int64)
    # Both are in order: numpy's own search would sort all records once more.
    present, wanted = pair(rows[of_leg], brokers.broker[of_leg]), pair(row, broker)
    at = np.searchsorted(present, wanted)
    missing = np.append(present, -1)[at] != wanted
    return np.stack([row[missing], broker[missing]])
