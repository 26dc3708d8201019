"""Append numpy columns to an existing Delta table, without a JVM."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from numpy.typing import NDArray

from fleetgauge_pipelines.simulation.silver import Columns


def append_columns(path: str, parts: Iterable[Columns], map_key: str) -> None:
    """Append all parts in one commit; the values of a map column become counts of the one key ``map_key``."""
    table = DeltaTable(path)
    schema = pa.schema(table.schema().to_arrow())
    batches = [_record_batch(columns, schema, map_key) for columns in parts]
    write_deltalake(table, pa.Table.from_batches(batches, schema), mode="append")


def _record_batch(columns: Columns, schema: pa.Schema, map_key: str) -> pa.RecordBatch:
    rows = next(len(values) for values in columns.values() if isinstance(values, np.ndarray))
    arrays = [_array(columns[field.name], field.type, rows, map_key) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: NDArray[Any] | str | int | bool | None, type_: Any, rows: int, map_key: str) -> pa.Array:
    if not isinstance(values, np.ndarray):
        return pa.repeat(pa.scalar(values, type_), rows)
    missing, unmasked = np.ma.getmaskarray(values), np.ma.getdata(values)
    if not pa.types.is_nested(type_):
        return pa.array(unmasked, mask=missing).cast(type_)
    present = pa.array(unmasked[~missing])
    offsets = pa.array(np.concatenate([[0], np.cumsum(~missing)]).astype(np.int32))
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(offsets, present.cast(type_.value_type), type=type_)
    keys = pa.repeat(pa.scalar(map_key, type_.key_type), len(present))
    return pa.MapArray.from_arrays(offsets, keys, present.cast(type_.item_type), type=type_)
