"""Which records of a batch are new: one for each run and sequence, as records are delivered at least once.

The first record of a key is kept. A later record with the same content is a replay and is dropped; a later
record with other content is a conflicting duplicate.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.transforms.lists import Flags, Ints
from fleetgauge_pipelines.transforms.raw_records import RECORD_COLUMNS
from fleetgauge_pipelines.transforms.row_diff import equal_values

KEY = list(PROBE_MINUTES.key)
_ROW = "__row"


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """Rows of a batch whose key another row has, each with the row that was first.

    ``winner`` are rows of the batch; where ``is_stored``, of the stored records.
    """

    row: Ints
    winner: Ints
    is_stored: Flags


def find_repeated_keys(keys: pa.Table, stored: pa.Table) -> RepeatedKeys:
    """Return the rows of a batch whose key is stored, or which are not the first of their key.

    ``keys`` has run_id, sequence and position, which gives the order; ``stored`` has run_id and sequence, and
    may have a key twice: of records on two days that no batch has seen together.
    """
    numbered = keys.select(KEY).append_column(_ROW, pa.array(np.arange(keys.num_rows)))
    rows_of_stored = stored.select(KEY).append_column("stored", pa.array(np.arange(stored.num_rows)))
    first_stored = rows_of_stored.group_by(KEY).aggregate([("stored", "min")])
    of_key = numbered.join(first_stored, KEY, join_type="left outer").sort_by(_ROW)
    stored_row = np.asarray(of_key["stored_min"].fill_null(-1), np.int64)
    first = _find_firsts(keys)
    rows = np.flatnonzero((stored_row >= 0) | (first != np.arange(len(first))))
    is_stored = stored_row[rows] >= 0
    return RepeatedKeys(rows, np.where(is_stored, stored_row[rows], first[rows]), is_stored)


def _find_firsts(keys: pa.Table) -> Ints:
    """Return of each row the first one with its key, by position."""
    run = np.asarray(keys["run_id"].combine_chunks().dictionary_encode().indices, np.int64)
    sequence, position = (np.asarray(keys[name], np.int64) for name in ("sequence", "position"))
    order = np.lexsort((position, sequence, run))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (run[order][1:] != run[order][:-1]) | (sequence[order][1:] != sequence[order][:-1])
    firsts = np.empty(len(order), np.int64)
    firsts[order] = order[begins][np.cumsum(begins) - 1]
    return firsts


def have_same_content(left: pa.Table, right: pa.Table) -> Flags:
    """Return which rows of two tables of records have the same content; maps may be in any order."""
    same = np.ones(left.num_rows, np.bool_)
    for name in RECORD_COLUMNS:
        differs = np.flatnonzero(~equal_values(left[name], right[name]))
        if pa.types.is_map(left[name].type):
            rows = pa.array(differs)
            pairs = zip(left[name].take(rows).to_pylist(), right[name].take(rows).to_pylist(), strict=True)
            differs = differs[[dict(ours) != dict(theirs) for ours, theirs in pairs]]
        same[differs] = False
    return same
