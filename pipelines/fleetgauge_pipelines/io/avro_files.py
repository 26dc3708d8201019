"""Read Avro object container files as the same raw records as those of a Kafka topic.

A record's body has the same bytes in a container file as after a single-object header. So each body is copied
unchanged and prefixed with the header of the schema that it was written with, and decoded like one from
Kafka.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import fastavro

from fleetgauge_core.contract.logical_types import strip_logical_types
from fleetgauge_core.contract.single_object import SINGLE_OBJECT_MARKER, compute_fingerprint
from fleetgauge_core.tables import PROBE_MINUTES

#: value, source, position and hint, as in record_files.RAW_DDL.
RawRecord = tuple[bytes | None, str, int, str | None]


def read_avro_records(path: Path, file_number: int) -> Iterator[RawRecord]:
    """Yield the records of a file as (value, source, position, hint); the source is `file:index`.

    ``hint`` is the quarantine reason that only the file can tell: 'missing_field' if its schema lacks a
    required field. The part of a file that cannot be read becomes one record with the hint 'not_decodable'.
    """
    base = file_number << 40
    index = 0
    try:
        with path.open("rb") as file:
            blocks = fastavro.block_reader(file)
            schema: Any = strip_logical_types(blocks.writer_schema)
            header = SINGLE_OBJECT_MARKER + compute_fingerprint(schema)
            parsed, hint = fastavro.parse_schema(schema), _find_missing_field(schema)
            # fastavro's stubs omit the attribute that has a block's decompressed bytes.
            for block in cast(Iterable[Any], blocks):
                for value in _split_block(block.bytes_, block.num_records, parsed):
                    yield header + value, f"{path.name}:{index}", base + index, hint
                    index += 1
    except Exception:
        # A truncated file, a damaged block or a file of another format may raise any exception.
        yield None, f"{path.name}:{index}", base + index, "not_decodable"


def _split_block(block: BytesIO, records: int, parsed: Any) -> Iterator[bytes]:
    """Yield the bytes of each record; from one that cannot be decoded on, the rest of the block."""
    content = block.getvalue()
    start = block.tell()
    for _ in range(records):
        try:
            # Decoded only to find where the record ends; invalid text is detected later, as for other
            # records.
            fastavro.schemaless_reader(block, parsed, None, handle_unicode_errors="replace")
        except Exception:
            yield content[start:]
            return
        yield content[start : block.tell()]
        start = block.tell()


def _find_missing_field(schema: Any) -> str | None:
    """Return 'missing_field' for a ProbeMinute schema without a field that version 1 requires."""
    if not isinstance(schema, dict) or str(schema.get("name", "")).rpartition(".")[2] != "ProbeMinute":
        return None
    not_required = {"source", "ingested_at", "day", "rack", "leader_epoch"}
    present = {field["name"] for field in schema.get("fields", ())}
    return "missing_field" if set(PROBE_MINUTES.column_names) - not_required - present else None
