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

from fleetgauge_core.contract.logical_types import without_logical_types
from fleetgauge_core.contract.single_object import MARKER, fingerprint
from fleetgauge_core.tables import PROBE_MINUTES

Row = tuple[bytes | None, str, int, str | None]


def raw_records(path: Path, file_number: int) -> Iterator[Row]:
    """The records of one file: value, source (`file:index`), position, hint.

    ``hint`` names a reason that only the file can tell (a schema that lacks a
    required field); it is None otherwise. What cannot be read of the file is a
    row of its own, not an error.
    """
    base = file_number << 40
    index = 0
    try:
        with path.open("rb") as file:
            blocks = fastavro.block_reader(file)
            schema: Any = without_logical_types(blocks.writer_schema)
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


def _lacks_a_field(schema: Any) -> str | None:
    """A ProbeMinute of a foreign schema whose writer left out what version 1 requires."""
    if not isinstance(schema, dict) or str(schema.get("name", "")).rpartition(".")[2] != "ProbeMinute":
        return None
    brought = {"source", "ingested_at", "day", "rack", "leader_epoch"}
    present = {field["name"] for field in schema.get("fields", ())}
    return "missing_field" if set(PROBE_MINUTES.names) - brought - present else None
