"""What MirrorMaker 2 writes of its mirrors (KIP-382): offset syncs, checkpoints of groups, heartbeats.

Kafka's own types: integers are big-endian, a string is its length as int16 and then UTF-8. An offset sync
has no version; the other two begin with one. Whatever cannot be read is answered with a refusal, as these
topics are open to whoever may write to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct
from typing import TypeVar

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_VERSION = 0

Record = TypeVar("Record")


class Reason(StrEnum):
    """Why a record was refused, by the name that scripts see."""

    NO_KEY = "no_key"
    DELETED = "deleted"
    """It has no value: a tombstone."""
    TOO_SHORT = "too_short"
    TRAILING_BYTES = "trailing_bytes"
    UNKNOWN_VERSION = "unknown_version"
    NOT_TEXT = "not_text"
    NEGATIVE = "negative"
    """A length, a partition, an offset or a time."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that is none of these; ``detail`` is for a person."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The record at ``upstream`` of the source is the one at ``downstream`` of the destination."""

    topic: str
    """As the source calls it."""
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class GroupCheckpoint:
    """Where MirrorMaker 2 has translated a group to: both are offsets that it reads next."""

    group: str
    topic: str
    """As the destination calls it."""
    partition: int
    upstream: int
    downstream: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A mirror from ``source`` to ``target`` was alive; both are aliases."""

    source: str
    target: str
    timestamp_ms: int


class _RefusedError(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.refusal = Refusal(reason, detail)


class _Reader:
    """Bytes from front to back. Everything raises _RefusedError."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._at = 0

    def int32(self) -> int:
        return self._not_negative(self._integer(_INT32))

    def int64(self) -> int:
        return self._not_negative(self._integer(_INT64))

    def version(self) -> None:
        found = self._integer(_INT16)
        if found != _VERSION:
            raise _RefusedError(Reason.UNKNOWN_VERSION, f"{self._name}: version {found}, known is {_VERSION}")

    def text(self) -> str:
        length = self._not_negative(self._integer(_INT16))
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise _RefusedError(Reason.NOT_TEXT, f"{self._name}: {error.reason}") from error

    def end(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise _RefusedError(Reason.TRAILING_BYTES, f"{self._name}: {left} bytes after the record")

    def _integer(self, kind: Struct) -> int:
        (found,) = kind.unpack(self._take(kind.size))
        return int(found)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise _RefusedError(Reason.TOO_SHORT, f"{self._name}: {size} bytes wanted, {len(taken)} left")
        self._at += size
        return taken

    def _not_negative(self, number: int) -> int:
        if number < 0:
            raise _RefusedError(Reason.NEGATIVE, f"{self._name}: {number} at byte {self._at}")
        return number


def offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync | Refusal:
    """A record of ``mm2-offset-syncs.<other alias>.internal``."""

    def read(of_key: _Reader, of_value: _Reader) -> OffsetSync:
        return OffsetSync(of_key.text(), of_key.int32(), of_value.int64(), of_value.int64())

    return _read(key, value, read)


def group_checkpoint(key: bytes | None, value: bytes | None) -> GroupCheckpoint | Refusal:
    """A record of ``<source alias>.checkpoints.internal``."""

    def read(of_key: _Reader, of_value: _Reader) -> GroupCheckpoint:
        of_value.version()
        return GroupCheckpoint(
            of_key.text(), of_key.text(), of_key.int32(), of_value.int64(), of_value.int64(), of_value.text()
        )

    return _read(key, value, read)


def heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat | Refusal:
    """A record of ``heartbeats``."""

    def read(of_key: _Reader, of_value: _Reader) -> Heartbeat:
        of_value.version()
        return Heartbeat(of_key.text(), of_key.text(), of_value.int64())

    return _read(key, value, read)


def _read(
    key: bytes | None, value: bytes | None, read: Callable[[_Reader, _Reader], Record]
) -> Record | Refusal:
    if key is None:
        return Refusal(Reason.NO_KEY, "a record without a key")
    if value is None:
        return Refusal(Reason.DELETED, "a tombstone")
    of_key, of_value = _Reader(key, "key"), _Reader(value, "value")
    try:
        record = read(of_key, of_value)
        of_key.end()
        of_value.end()
    except _RefusedError as error:
        return error.refusal
    return record
