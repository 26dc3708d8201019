"""Avro single-object encoding (Avro 1.12 specification): C3 01, fingerprint, body.

The fingerprint is the schema's CRC-64-AVRO in little-endian bytes, so that a reader
can tell which schema version wrote a record before it decodes the body.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from io import BytesIO
from typing import Any, cast

import fastavro
import fastavro.schema

SINGLE_OBJECT_MARKER = b"\xc3\x01"
HEADER_BYTES = 10

#: A ProbeMinute of 100 probes takes about 1 KiB; a value above this limit is rejected without decoding.
MAX_RECORD_BYTES = 64 * 1024


class RecordDecodeError(ValueError):
    """A value that is not a record of the expected schema.

    ``reason`` is one of the quarantine's reasons (tables.QUARANTINE_REASONS); ``detail`` describes the fault.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class AvroSchema:
    """One version of a record's Avro schema, read from a packaged ``.avsc`` file when it is first used."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    @cached_property
    def text(self) -> str:
        """The content of the schema file: JSON."""
        return files("fleetgauge_core.contract").joinpath(self._resource).read_text(encoding="utf-8")

    @cached_property
    def _parsed(self) -> Any:
        return fastavro.parse_schema(json.loads(self.text))

    @cached_property
    def fingerprint(self) -> bytes:
        """The 8 bytes that follow the marker: CRC-64-AVRO of the schema, little-endian."""
        return compute_fingerprint(json.loads(self.text))

    @cached_property
    def header(self) -> bytes:
        """The 10 bytes that precede every body of this version: marker and fingerprint."""
        return SINGLE_OBJECT_MARKER + self.fingerprint

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """Return the bytes of a Kafka record value that holds these fields."""
        buffer = BytesIO()
        buffer.write(self.header)
        fastavro.schemaless_writer(buffer, self._parsed, record)
        return buffer.getvalue()

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the fields of the record in a Kafka record value.

        Raises: RecordDecodeError if the value is too large, was not written with this schema version,
        cannot be decoded, or has bytes after the record.
        """
        if len(value) > MAX_RECORD_BYTES:
            raise RecordDecodeError("oversize", f"{len(value)} bytes, at most {MAX_RECORD_BYTES}")
        if len(value) < HEADER_BYTES or value[:2] != SINGLE_OBJECT_MARKER:
            raise RecordDecodeError("not_decodable", "no single-object marker")
        if value[2:HEADER_BYTES] != self.fingerprint:
            raise RecordDecodeError("unknown_fingerprint", value[2:HEADER_BYTES].hex())
        body = BytesIO(value[HEADER_BYTES:])
        try:
            record = cast(dict[str, Any], fastavro.schemaless_reader(body, self._parsed, None))
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise RecordDecodeError("not_decodable", str(error) or type(error).__name__) from error
        # fastavro accepts an int of any size; Avro's int has 32 bits.
        if not fastavro.validate(record, self._parsed, raise_errors=False):
            raise RecordDecodeError("not_decodable", "a value is outside the range of its type")
        if body.tell() != len(value) - HEADER_BYTES:
            raise RecordDecodeError(
                "trailing_bytes", f"{len(value) - HEADER_BYTES - body.tell()} bytes after the record"
            )
        return record


def compute_fingerprint(schema: Any) -> bytes:
    """Return the CRC-64-AVRO of a parsed schema's canonical form as 8 little-endian bytes."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
