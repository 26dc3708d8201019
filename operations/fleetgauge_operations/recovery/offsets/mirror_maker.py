"""Decode the offset syncs of MirrorMaker 2 (KIP-382).

Integers are big-endian; a string is its length as int16 followed by UTF-8. A record that cannot be decoded
yields a MalformedRecord instead of an exception, because any client with the right to write to the topic can
put anything there.
"""

from dataclasses import dataclass
from enum import StrEnum
from struct import Struct

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")


class MalformedReason(StrEnum):
    """Why a record cannot be decoded."""

    NO_KEY = "no_key"
    DELETED = "deleted"
    """The record has no value: it is a tombstone."""
    TOO_SHORT = "too_short"
    TRAILING_BYTES = "trailing_bytes"
    NOT_TEXT = "not_text"
    NEGATIVE = "negative"
    """A length, partition, offset or timestamp is negative."""


@dataclass(frozen=True, slots=True)
class MalformedRecord:
    """A record that cannot be decoded; ``detail`` describes the problem in one line."""

    reason: MalformedReason
    detail: str


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The record at offset ``upstream`` of the source is the one at ``downstream`` of the destination."""

    topic: str
    """Name of the topic in the source cluster."""
    partition: int
    upstream: int
    downstream: int


class _MalformedRecordError(Exception):
    def __init__(self, reason: MalformedReason, detail: str) -> None:
        super().__init__(detail)
        self.malformed = MalformedRecord(reason, detail)


class _ByteReader:
    """Reads bytes from front to back. Every method raises _MalformedRecordError."""

    def __init__(self, encoded: bytes, name: str) -> None:
        self._encoded = encoded
        self._name = name
        self._index = 0

    def read_int32(self) -> int:
        return self._require_not_negative(self._read_integer(_INT32))

    def read_int64(self) -> int:
        return self._require_not_negative(self._read_integer(_INT64))

    def read_text(self) -> str:
        length = self._require_not_negative(self._read_integer(_INT16))
        try:
            return self._read_bytes(length).decode()
        except UnicodeDecodeError as error:
            raise _MalformedRecordError(MalformedReason.NOT_TEXT, f"{self._name}: {error.reason}") from error

    def require_end(self) -> None:
        remaining = len(self._encoded) - self._index
        if remaining:
            raise _MalformedRecordError(
                MalformedReason.TRAILING_BYTES, f"{self._name}: {remaining} bytes after the record"
            )

    def _read_integer(self, kind: Struct) -> int:
        (number,) = kind.unpack(self._read_bytes(kind.size))
        return int(number)

    def _read_bytes(self, size: int) -> bytes:
        encoded = self._encoded[self._index : self._index + size]
        if len(encoded) < size:
            raise _MalformedRecordError(
                MalformedReason.TOO_SHORT, f"{self._name}: {size} bytes expected, {len(encoded)} left"
            )
        self._index += size
        return encoded

    def _require_not_negative(self, number: int) -> int:
        if number < 0:
            raise _MalformedRecordError(
                MalformedReason.NEGATIVE, f"{self._name}: negative number {number} before byte {self._index}"
            )
        return number


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync | MalformedRecord:
    """Decode a record of ``mm2-offset-syncs.<other alias>.internal``."""
    if key is None:
        return MalformedRecord(MalformedReason.NO_KEY, "the record has no key")
    if value is None:
        return MalformedRecord(MalformedReason.DELETED, "the record is a tombstone")
    key_reader, value_reader = _ByteReader(key, "key"), _ByteReader(value, "value")
    try:
        sync = OffsetSync(
            topic=key_reader.read_text(),
            partition=key_reader.read_int32(),
            upstream=value_reader.read_int64(),
            downstream=value_reader.read_int64(),
        )
        key_reader.require_end()
        value_reader.require_end()
    except _MalformedRecordError as error:
        return error.malformed
    return sync
