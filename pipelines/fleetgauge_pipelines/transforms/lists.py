"""Lists of whole numbers, one a row, end to end in one array: no Python object for a list or a number."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_INT_RANGE = 2**31


@dataclass(frozen=True, slots=True)
class Lists:
    """A list for each row: that of row i is ``values[starts[i] : starts[i] + sizes[i]]``."""

    values: NDArray[Any]
    starts: Ints
    sizes: Ints

    @classmethod
    def from_arrow(cls, column: pa.ChunkedArray | pa.Array) -> "Lists":
        """Return a column of lists; a missing list is an empty one."""
        array = join_chunks(column)
        return cls.of(np.asarray(array.values), array)

    @classmethod
    def of(cls, values: NDArray[Any], array: pa.ListArray | pa.MapArray) -> "Lists":
        """Return the lists into which a column of lists or maps divides some values."""
        starts = np.asarray(array.offsets[:-1], np.int64)
        sizes = np.asarray(array.offsets[1:], np.int64) - starts
        if array.null_count:
            sizes = np.where(np.asarray(array.is_valid()), sizes, 0)
        return cls(values, starts, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, rows: NDArray[Any]) -> "Lists":
        """Return the lists of some rows, by positions or flags; no number is copied."""
        return Lists(self.values, self.starts[rows], self.sizes[rows])

    def at(self, rank: Ints) -> tuple[Ints, Flags]:
        """Return the number at each list's 1-based rank, and where there is one; elsewhere it is 0."""
        present = (rank >= 1) & (rank <= self.sizes)
        numbers = np.zeros(len(self), np.int64)
        numbers[present] = self.values[(self.starts + rank - 1)[present]]
        return numbers, present

    def last(self, count: Ints | int) -> "Lists":
        """Return the last ``count`` numbers of each list, or all of a shorter one."""
        kept = np.minimum(self.sizes, count)
        return Lists(self.values, self.starts + self.sizes - kept, kept)

    def count_at_least(self, threshold: Ints) -> Ints:
        """Return how many numbers of each ascending list are at least its row's threshold, by bisection."""
        lo, hi = np.zeros_like(self.sizes), self.sizes.copy()
        for _ in range(int(self.sizes.max(initial=0)).bit_length()):
            open_ = np.flatnonzero(lo < hi)
            middle = (lo[open_] + hi[open_]) // 2
            is_less = self.values[self.starts[open_] + middle] < threshold[open_]
            lo[open_] = np.where(is_less, middle + 1, lo[open_])
            hi[open_] = np.where(is_less, hi[open_], middle)
        return self.sizes - lo

    def flatten(self) -> tuple[NDArray[Any], Ints]:
        """Return all numbers, and of each the row whose list it is in."""
        rows = np.repeat(np.arange(len(self)), self.sizes)
        return self._join(), rows

    def _join(self) -> NDArray[Any]:
        """Return all numbers; they are not copied if the lists follow each other already."""
        if not len(self):
            return self.values[:0]
        if np.array_equal(self.starts[1:], self.starts[:-1] + self.sizes[:-1]):
            positions: Any = slice(self.starts[0], self.starts[-1] + self.sizes[-1])
        else:
            before = np.cumsum(self.sizes) - self.sizes
            positions = np.arange(int(self.sizes.sum())) + np.repeat(self.starts - before, self.sizes)
        joined: NDArray[Any] = self.values[positions]
        return joined

    def pool(self, groups: Ints, count: int) -> "Lists":
        """Return an ascending list of all numbers of each of ``count`` groups; ``groups`` has each row's."""
        values = self.take(np.argsort(groups, kind="stable"))._join()
        sizes = np.zeros(count, np.int64)
        np.add.at(sizes, groups, self.sizes)
        return Lists(values, np.cumsum(sizes) - sizes, sizes).ascending()

    def ascending(self) -> "Lists":
        """Return each list in ascending order."""
        values = np.empty(int(self.sizes.sum()), self.values.dtype)
        starts = np.cumsum(self.sizes) - self.sizes
        # All lists of a size are one matrix: numpy sorts its rows ten times as fast as one long array.
        for size in np.flatnonzero(np.bincount(self.sizes[self.sizes > 0])).tolist():
            rows = np.flatnonzero(self.sizes == size)
            numbers = _windows(self.values, size)[self.starts[rows]]
            numbers.sort(axis=1)
            _windows(values, size)[starts[rows]] = numbers
        return Lists(values, starts, self.sizes)

    def replace(self, rows: Ints, others: "Lists") -> "Lists":
        """Return the lists with those of some rows replaced by others."""
        starts, sizes = self.starts.copy(), self.sizes.copy()
        starts[rows], sizes[rows] = others.starts + len(self.values), others.sizes
        return Lists(np.concatenate([self.values, others.values]), starts, sizes)

    def empty_all_but(self, rows: Flags) -> "Lists":
        """Return the lists of some rows, and empty ones for all others."""
        return Lists(self.values, self.starts, np.where(rows, self.sizes, 0))

    def distinct(self) -> "Lists":
        """Return each ascending list without repeated numbers."""
        values, rows = self.flatten()
        kept = np.ones(len(values), np.bool_)
        kept[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
        sizes = np.bincount(rows[kept], minlength=len(self)).astype(np.int64)
        return Lists(values[kept], np.cumsum(sizes) - sizes, sizes)

    def to_arrow(self) -> pa.ListArray:
        """Return a column of lists of 32-bit integers."""
        values = self._join()
        offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.astype(np.int32)))


def join_chunks(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; Arrow itself copies also a single chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _windows(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return ``size`` numbers from each position on, as a view."""
    return np.lib.stride_tricks.sliding_window_view(values, size, writeable=values.flags.writeable)


def pair(high: Ints, low: Ints) -> Ints:
    """Return one number for each pair, in the order of the pairs; ``low`` are 32-bit integers."""
    return (high << 32) + (low + _INT_RANGE)


def unique_pairs(high: Ints, low: Ints) -> tuple[Ints, Ints]:
    """Return the different pairs in their order, as two arrays."""
    # np.unique of many numbers takes ten times as long: it hashes them.
    pairs = np.sort(pair(high, low))
    return unpair(pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs)


def unpair(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the two numbers of each pair."""
    return pairs >> 32, (pairs & (2 * _INT_RANGE - 1)) - _INT_RANGE


def rank_of(percent: int, count: Ints) -> Ints:
    """Return the 1-based nearest rank of a percentile of ``count`` values: slo.quantile.nearest_rank."""
    return (count * percent + 99) // 100
