"""Avro single-object encoding (Avro 1.12 specification): C3 01, fingerprint, body.

The fingerprint is the schema's CRC-64-AVRO in little-endian bytes, so that a
reader knows which version wrote a record before it decodes a byte of it.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from io import BytesIO
from typing import Any, cast

import fastavro
import fastavro.schema

MARKER = b"\xc3\x01"
HEADER_BYTES = 10

#: A ProbeMinute of 100 probes has about 1 KiB; what is far larger is not one.
MAX_RECORD_BYTES = 64 * 1024


class ContractError(ValueError):
    """A record that cannot be read; ``reason`` is one of the quarantine's words."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Schema:
    """One version of one record's schema."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    @cached_property
    def text(self) -> str:
        """The schema as its file has it."""
        return files("fleetgauge_core.contract").joinpath(self._resource).read_text(encoding="utf-8")

    @cached_property
    def _parsed(self) -> Any:
        return fastavro.parse_schema(json.loads(self.text))

    @cached_property
    def fingerprint(self) -> bytes:
        """The 8 bytes that follow the marker."""
        return fingerprint(json.loads(self.text))

    @cached_property
    def header(self) -> bytes:
        """The 10 bytes before every body of this version."""
        return MARKER + self.fingerprint

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """The record as the bytes of one Kafka value."""
        buffer = BytesIO()
        buffer.write(self.header)
        fastavro.schemaless_writer(buffer, self._parsed, record)
        return buffer.getvalue()

    def decode(self, value: bytes) -> dict[str, Any]:
        """The record in one Kafka value. Raises ContractError for anything else."""
        if len(value) > MAX_RECORD_BYTES:
            raise ContractError("oversize", f"{len(value)} bytes, at most {MAX_RECORD_BYTES}")
        if len(value) < HEADER_BYTES or value[:2] != MARKER:
            raise ContractError("not_decodable", "no single-object marker")
        if value[2:HEADER_BYTES] != self.fingerprint:
            raise ContractError("unknown_fingerprint", value[2:HEADER_BYTES].hex())
        body = BytesIO(value[HEADER_BYTES:])
        try:
            record = cast(dict[str, Any], fastavro.schemaless_reader(body, self._parsed, None))
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise ContractError("not_decodable", str(error) or type(error).__name__) from error
        # fastavro reads an int of any size; Avro's has 32 bits.
        if not fastavro.validate(record, self._parsed, raise_errors=False):
            raise ContractError("not_decodable", "a value is outside its type")
        if body.tell() != len(value) - HEADER_BYTES:
            raise ContractError(
                "trailing_bytes", f"{len(value) - HEADER_BYTES - body.tell()} bytes after the record"
            )
        return record


def fingerprint(schema: Any) -> bytes:
    """CRC-64-AVRO of a parsed schema's canonical form, little-endian."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
