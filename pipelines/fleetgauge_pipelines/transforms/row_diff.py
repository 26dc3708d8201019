"""Which rows of a table have to change for it to hold the wanted rows: tables.row_diff as Arrow tables."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.tables import Table
from fleetgauge_pipelines.transforms.lists import Flags, Ints

_WANTED, _STORED = "__wanted", "__stored"


@dataclass(frozen=True, slots=True)
class TableDiff:
    """The wanted rows to write, the stored rows that they replace or that go, and how many rows change."""

    written: Ints
    removed: Ints
    changed: int


def diff_tables(table: Table, wanted: pa.Table, stored: pa.Table) -> TableDiff:
    """Return positions of rows; rows that differ only in volatile columns are equal.

    Maps are compared in their order: every writer sorts them. A key that is stored twice differs.
    """
    keys = list(table.key)
    new = wanted.select(keys).append_column(_WANTED, pa.array(np.arange(wanted.num_rows)))
    old = stored.select(keys).append_column(_STORED, pa.array(np.arange(stored.num_rows)))
    joined = new.join(old, keys, join_type="full outer").combine_chunks()
    new_row, old_row = joined[_WANTED].combine_chunks(), joined[_STORED].combine_chunks()
    is_new, is_old = np.asarray(new_row.is_valid()), np.asarray(old_row.is_valid())
    both = np.flatnonzero(is_new & is_old)
    new_of_both = np.asarray(new_row.take(pa.array(both)), np.int64)
    old_of_both = np.asarray(old_row.take(pa.array(both)), np.int64)
    differs = np.zeros(len(both), np.bool_)
    for name in table.compared_columns:
        differs |= ~equal_values(
            wanted[name].take(pa.array(new_of_both)), stored[name].take(pa.array(old_of_both))
        )
    inserted = np.asarray(new_row.filter(pa.array(is_new & ~is_old)), np.int64)
    deleted = np.asarray(old_row.filter(pa.array(is_old & ~is_new)), np.int64)
    return TableDiff(
        np.unique(np.concatenate([inserted, new_of_both[differs]])),
        np.unique(np.concatenate([deleted, old_of_both[differs]])),
        len(inserted) + len(deleted) + int(differs.sum()),
    )


def equal_values(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Flags:
    """Return in which rows two columns are equal; NULL equals NULL."""
    if pa.types.is_nested(left.type):
        return _equal_lists(left.combine_chunks(), right.combine_chunks())
    same = pc.equal(left, right).fill_null(False)
    equal: Flags = np.asarray(pc.or_(same, pc.and_(left.is_null(), right.is_null())))
    return equal


def _equal_lists(left: pa.Array, right: pa.Array) -> Flags:
    """Return which lists or maps have equal items in the same order, or are both NULL."""
    sizes = np.diff(np.asarray(left.offsets))
    same: Flags = (sizes == np.diff(np.asarray(right.offsets))) & (
        np.asarray(left.is_null()) == np.asarray(right.is_null())
    )
    compared = np.flatnonzero(same & (sizes > 0))
    if len(compared):
        rows = pa.array(compared)
        parts = zip(_flatten(left.take(rows)), _flatten(right.take(rows)), strict=True)
        items = np.logical_and.reduce([np.asarray(pc.equal(ours, theirs)) for ours, theirs in parts])
        begins = np.cumsum(sizes[compared]) - sizes[compared]
        same[compared] = np.logical_and.reduceat(items, begins)
    return same


def _flatten(array: pa.Array) -> tuple[pa.Array, ...]:
    return (array.keys, array.items) if pa.types.is_map(array.type) else (array.flatten(),)
