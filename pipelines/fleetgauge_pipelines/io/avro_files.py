"""Avro object container files as the same raw records that Kafka carries.

A record's body has the same bytes in a container as behind a single-object
header, so each is cut out as it stands and given the header of the schema it
was written with. From there on files and topics take one way.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import fastavro
import fastavro.schema
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_pipelines.tables import PROBE_MINUTES
from fleetgauge_probes.contract.single_object import MARKER, fingerprint

RAW_DDL = "value binary, source string, position bigint, hint string"

_ROWS_PER_ARROW_BATCH = 2000

Row = tuple[bytes | None, str, int, str | None]


def read_avro_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Every record of the folder's *.avro files: value, source (`file:index`), position, hint.

    ``hint`` names a reason that only the file can tell (a schema that lacks a
    required field); it is NULL otherwise. Raises FileNotFoundError when there is no file.
    """
    paths = sorted(str(path) for path in folder.glob("*.avro"))
    if not paths:
        raise FileNotFoundError(f"{folder}: no *.avro file")
    numbered = spark.createDataFrame(list(enumerate(paths)), "number bigint, path string").repartition(
        len(paths)
    )
    return numbered.mapInArrow(_read_batches, RAW_DDL)


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, path in zip(batch["number"].to_pylist(), batch["path"].to_pylist(), strict=True):
            yield from _in_arrow(raw_records(Path(path), number))


def _in_arrow(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [("value", pa.binary()), ("source", pa.string()), ("position", pa.int64()), ("hint", pa.string())]
    )
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _ROWS_PER_ARROW_BATCH:
            yield _batch(waiting, schema)
            waiting = []
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def raw_records(path: Path, file_number: int) -> Iterator[Row]:
    """The records of one file; what cannot be read of it is a row of its own, not an error."""
    base = file_number << 40
    index = 0
    try:
        with path.open("rb") as file:
            blocks = fastavro.block_reader(file)
            schema: Any = _without_logical_types(blocks.writer_schema)
            header = MARKER + fingerprint(schema)
            parsed, hint = fastavro.parse_schema(schema), _lacks_a_field(schema)
            # The stubs leave out where a block keeps its decompressed bytes.
            for block in cast(Iterable[Any], blocks):
                for value in _bodies(block.bytes_, block.num_records, parsed):
                    yield header + value, f"{path.name}:{index}", base + index, hint
                    index += 1
    except Exception:
        # A torn tail, a damaged block or a file of something else raises anything at all.
        yield None, f"{path.name}:{index}", base + index, "not_decodable"


def _bodies(block: BytesIO, records: int, parsed: Any) -> Iterator[bytes]:
    """Each record's bytes; one that cannot be decoded takes the rest of its block with it."""
    data = block.getvalue()
    at = block.tell()
    for _ in range(records):
        try:
            # Only to find the record's end; whether its text is text is judged with all else.
            fastavro.schemaless_reader(block, parsed, None, handle_unicode_errors="replace")
        except Exception:
            yield data[at:]
            return
        yield data[at : block.tell()]
        at = block.tell()


def _without_logical_types(schema: Any) -> Any:
    """Plain integers cannot overflow a datetime; fingerprints do not depend on it."""
    if isinstance(schema, dict):
        hidden = {"logicalType", "__fastavro_parsed__", "__named_schemas"}
        return {key: _without_logical_types(value) for key, value in schema.items() if key not in hidden}
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    return schema


def _lacks_a_field(schema: Any) -> str | None:
    """A ProbeMinute of a foreign schema whose writer left out what version 1 requires."""
    if not isinstance(schema, dict) or str(schema.get("name", "")).rpartition(".")[2] != "ProbeMinute":
        return None
    brought = {"source", "ingested_at", "day", "rack", "leader_epoch"}
    present = {field["name"] for field in schema.get("fields", ())}
    return "missing_field" if set(PROBE_MINUTES.names) - brought - present else None
