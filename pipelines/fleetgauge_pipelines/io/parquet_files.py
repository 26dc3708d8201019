"""Parquet files of probe records, a column a field as bronze has them, as the raw records of a topic.

A row is encoded as its agent would have; what lacks a field is encoded without
it, under the fingerprint of that poorer schema, as an Avro file would have it.
"""

import json
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.contract.logical_types import without_logical_types
from fleetgauge_core.contract.single_object import MARKER, fingerprint
from fleetgauge_pipelines.io.avro_files import Row

_ROWS_AT_ONCE = 1000

#: Columns that may hold NULL or be left out.
_OPTIONAL = frozenset({"rack", "leader_epoch"})


def raw_records(path: Path, file_number: int) -> Iterator[Row]:
    """The records of one file: value, source (`file:index`), position, hint.

    ``hint`` names a reason that the bytes alone do not tell; it is None for what is
    a record. What cannot be read of the file is a row of its own, not an error.
    """
    base = file_number << 40
    index = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in _names() if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                for record in _records(batch):
                    value, hint = _encoded(record)
                    yield value, f"{path.name}:{index}", base + index, hint
                    index += 1
    except Exception:
        # A cut or damaged file and one of something else raise anything at all.
        yield None, f"{path.name}:{index}", base + index, "not_decodable"


def _records(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as the wire has them: times in milliseconds, maps as dicts."""
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    columns = {name: _values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if entries is None else dict(entries) for entries in values]
    return values


def _encoded(record: dict[str, Any]) -> tuple[bytes | None, str | None]:
    missing = frozenset(n for n in _names() if n not in _OPTIONAL and record.get(n) is None)
    header, schema = _writer(missing)
    present = {name: value for name, value in record.items() if name not in missing}
    body = BytesIO(header)
    body.seek(len(header))
    try:
        fastavro.schemaless_writer(body, schema, present)
    except Exception:
        # A column of another type.
        return None, "not_decodable"
    if not fastavro.validate(present, schema, raise_errors=False):
        return body.getvalue(), "not_decodable"
    return body.getvalue(), "missing_field" if missing else None


@cache
def _writer(missing: frozenset[str]) -> tuple[bytes, Any]:
    """Header and schema of a ProbeMinute without these fields."""
    schema = without_logical_types(json.loads(PROBE_MINUTE.text))
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in missing]
    return MARKER + fingerprint(schema), fastavro.parse_schema(schema)


@cache
def _names() -> tuple[str, ...]:
    return tuple(field["name"] for field in json.loads(PROBE_MINUTE.text)["fields"])
