"""Read Parquet files of probe records, with a column for each field as in bronze, as raw records.

A row is encoded as its agent would have encoded it. A row without a required field is encoded without that
field, with the fingerprint of the reduced schema, as it would come from an Avro file.
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
from fleetgauge_core.contract.logical_types import strip_logical_types
from fleetgauge_core.contract.single_object import SINGLE_OBJECT_MARKER, compute_fingerprint
from fleetgauge_pipelines.io.avro_files import RawRecord

_ROWS_PER_BATCH = 1000

#: Columns that may hold NULL or be left out.
_OPTIONAL = frozenset({"rack", "leader_epoch"})


def read_parquet_records(path: Path, file_number: int) -> Iterator[RawRecord]:
    """Yield the records of a file as (value, source, position, hint); the source is `file:index`.

    ``hint`` is the quarantine reason that the bytes alone do not tell, None for a complete record. The part
    of a file that cannot be read becomes one record with the hint 'not_decodable'.
    """
    base = file_number << 40
    index = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in _field_names() if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=columns):
                for record in _to_records(batch):
                    value, hint = _encode(record)
                    yield value, f"{path.name}:{index}", base + index, hint
                    index += 1
    except Exception:
        # A truncated or damaged file, or one of another format, may raise any exception.
        yield None, f"{path.name}:{index}", base + index, "not_decodable"


def _to_records(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows with the types of the Avro schema: times in milliseconds, maps as dicts."""
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    columns = {
        name: _to_values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _to_values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if entries is None else dict(entries) for entries in values]
    return values


def _encode(record: dict[str, Any]) -> tuple[bytes | None, str | None]:
    missing = frozenset(name for name in _field_names() if name not in _OPTIONAL and record.get(name) is None)
    header, schema = _writer_schema(missing)
    present = {name: value for name, value in record.items() if name not in missing}
    body = BytesIO(header)
    body.seek(len(header))
    try:
        fastavro.schemaless_writer(body, schema, present)
    except Exception:
        # A column of another type may raise any exception.
        return None, "not_decodable"
    if not fastavro.validate(present, schema, raise_errors=False):
        return body.getvalue(), "not_decodable"
    return body.getvalue(), "missing_field" if missing else None


@cache
def _writer_schema(missing: frozenset[str]) -> tuple[bytes, Any]:
    """Return the single-object header and the schema of a ProbeMinute without the missing fields."""
    schema = strip_logical_types(json.loads(PROBE_MINUTE.text))
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in missing]
    return SINGLE_OBJECT_MARKER + compute_fingerprint(schema), fastavro.parse_schema(schema)


@cache
def _field_names() -> tuple[str, ...]:
    return tuple(field["name"] for field in json.loads(PROBE_MINUTE.text)["fields"])
