"""Decodes many Avro records of a flat schema at once (Avro 1.12, binary encoding), without Python objects.

A record in the plain encoding, which every writer emits, is decoded here: lists and maps in one block, whole
numbers in no more bytes than their type has, texts in ASCII. Any other value is left to the schema's own
decoder, which says what is wrong with it, or decodes it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fleetgauge_core.contract.single_object import HEADER_BYTES, MAX_RECORD_BYTES, AvroSchema
from fleetgauge_pipelines.transforms.lists import Flags, Ints, pair, unpair

Bytes = NDArray[np.uint8]

#: Bytes of a whole number by its Avro type, at most.
_MOST_BYTES = {"int": 5, "long": 10}
#: Entries of a map that are read one after the other; a record with more is not in the plain encoding.
_MOST_ENTRIES = 16


@dataclass(frozen=True, slots=True)
class PlainRecords:
    """The values that were decoded: their positions, and a column for each field of the schema."""

    rows: Ints
    columns: dict[str, pa.Array]


def decode_plain(values: pa.Array, schema: AvroSchema) -> PlainRecords:
    """Decode the values that are records in the plain encoding, with the single-object header of a schema."""
    sizes = np.asarray(pc.binary_length(values).fill_null(0), np.int64)
    # A value of any size may come; what is far too long is not even looked at.
    has_size = np.flatnonzero((sizes > HEADER_BYTES) & (sizes <= MAX_RECORD_BYTES))
    cursor = _Cursor.over(values.take(pa.array(has_size)), schema.header)
    columns = {name: read(cursor) for name, read in _list_readers(json.loads(schema.text))}
    rows = np.flatnonzero(cursor.is_plain & (cursor.at == cursor.ends))
    return PlainRecords(has_size[rows], {name: column(rows) for name, column in columns.items()})


#: Returns the column of a field for some of the values.
_Column = Callable[[Ints], pa.Array]


@dataclass(slots=True)
class _Cursor:
    """How far each value has been read; one that is not plain is read no further.

    A whole number ends with its first byte below 0x80, and so does every character of ASCII.
    """

    data: Bytes
    final_bytes: Ints
    """Positions of all bytes below 0x80."""
    at: Ints
    finals_before: Ints
    """How many of the final bytes come before ``at``."""
    ends: Ints
    is_plain: Flags

    @classmethod
    def over(cls, values: pa.Array, header: bytes) -> "_Cursor":
        """Return the cursor behind the header of values that are longer than it."""
        large = values.cast(pa.large_binary())
        _, bounds, content = large.buffers()
        offsets = np.frombuffer(bounds, np.int64)[large.offset : large.offset + len(large) + 1]
        data = np.frombuffer(content or b"", np.uint8)[offsets[0] : offsets[-1]]
        starts, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
        is_plain = np.ones(len(starts), np.bool_)
        for number, byte in enumerate(header):
            candidates = np.flatnonzero(is_plain)
            is_plain[candidates] = data[starts[candidates] + number] == byte
        # One more, so that there is one behind every position.
        final_bytes = np.append(np.flatnonzero(data < 0x80), len(data))
        at = starts + HEADER_BYTES
        return cls(data, final_bytes, at, np.searchsorted(final_bytes, at), ends, is_plain)

    def read_numbers(self, type_: str, where: Flags | None = None) -> Ints:
        """Read a whole number of each value, or of some, and return them; 0 of all others."""
        rows = self._list_rows(where)
        lasts = self._find_final(rows, 0)
        numbers = np.zeros(len(self.at), np.int64)
        numbers[rows], is_valid = _decode_numbers(self.data, self.at[rows], lasts, type_)
        self._advance(rows, lasts + 1, 1, is_valid)
        return numbers

    def read_texts(self, where: Flags | None = None) -> tuple[Ints, Ints]:
        """Read a text of each value, or of some, and return where they begin and their sizes."""
        sizes = self.read_numbers("long", where)
        begins, rows = self.at.copy(), self._list_rows(where)
        is_valid = (sizes[rows] >= 0) & (sizes[rows] <= self.ends[rows] - begins[rows])
        sizes[rows] = np.where(is_valid, sizes[rows], 0)
        ends = begins[rows] + sizes[rows]
        # As many final bytes as the text has bytes: all of it is ASCII.
        is_ascii = (sizes[rows] == 0) | (self._find_final(rows, sizes[rows] - 1) == ends - 1)
        self._advance(rows, ends, sizes[rows], is_valid & is_ascii)
        return begins, sizes

    def read_lists(self) -> tuple[Ints, Ints]:
        """Read a list of ints of each value; return how many final bytes come before it, and its size."""
        sizes = self._read_block_sizes()
        rows = np.flatnonzero(sizes > 0)
        firsts = self.finals_before.copy()
        lasts = self._find_final(rows, sizes[rows] - 1)
        self._advance(rows, lasts + 1, sizes[rows], np.ones(len(rows), np.bool_))
        self._read_end_of_blocks(sizes > 0)
        return firsts, np.where(self.is_plain, sizes, 0)

    def read_maps(self) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Read a map from text to int of each value; yield of entries the value, text, size and number."""
        sizes = self._read_block_sizes()
        self.is_plain &= sizes <= _MOST_ENTRIES
        for number in range(min(_MOST_ENTRIES, int(sizes.max(initial=0)))):
            has_entry = sizes > number
            begins, lengths = self.read_texts(has_entry)
            counts = self.read_numbers("int", has_entry)
            rows = np.flatnonzero(has_entry)
            yield rows, begins[rows], lengths[rows], counts[rows]
        self._read_end_of_blocks(sizes > 0)

    def read_branches(self) -> Flags:
        """Read which branch of a union with null each value has, and return whether it is not null."""
        branches = self.read_numbers("long")
        has_value: Flags = branches == 1
        self.is_plain &= (branches == 0) | has_value
        return has_value

    def _read_block_sizes(self) -> Ints:
        sizes = self.read_numbers("long")
        self.is_plain &= (sizes >= 0) & (sizes <= MAX_RECORD_BYTES)
        return np.where(self.is_plain, sizes, 0)

    def _read_end_of_blocks(self, where: Flags) -> None:
        self.is_plain &= self.read_numbers("long", where) == 0

    def _list_rows(self, where: Flags | None) -> Ints:
        return np.flatnonzero(self.is_plain if where is None else self.is_plain & where)

    def _find_final(self, rows: Ints, ahead: Ints | int) -> Ints:
        """Return the position of a value's next final byte, or of one further ahead."""
        last: Ints = self.final_bytes[np.minimum(self.finals_before[rows] + ahead, len(self.final_bytes) - 1)]
        return last

    def _advance(self, rows: Ints, to: Ints, passed: Ints | int, is_valid: Flags) -> None:
        """Move on to a position, unless it is beyond the value's end."""
        is_valid = is_valid & (to <= self.ends[rows])
        self.at[rows] = to
        self.finals_before[rows] += passed
        self.is_plain[rows[~is_valid]] = False


def _decode_numbers(data: Bytes, begins: Ints, lasts: Ints, type_: str) -> tuple[Ints, Flags]:
    """Return the zig-zag numbers in data[begins : lasts + 1], and which of them their type can hold."""
    most = _MOST_BYTES[type_]
    sizes = lasts - begins + 1
    # A further byte of zero says nothing, and no writer emits it.
    is_padded = (sizes > 1) & (data[np.minimum(lasts, len(data) - 1)] == 0)
    is_valid = (sizes >= 1) & (sizes <= most) & ~is_padded
    total = np.zeros(len(begins), np.uint64)
    for number in range(min(most, int(sizes.max(initial=0)))):
        rows = slice(None) if number == 0 else np.flatnonzero(sizes > number)
        septets = (data[np.minimum(begins[rows] + number, len(data) - 1)] & 0x7F).astype(np.uint64)
        if number == most - 1:
            # What the last byte may hold of 32 or 64 bits.
            fits = septets < (16 if type_ == "int" else 2)
            is_valid[rows] &= fits
        total[rows] |= septets << np.uint64(7 * number)
    return ((total >> np.uint64(1)) ^ (np.uint64(0) - (total & np.uint64(1)))).astype(np.int64), is_valid


def _list_readers(schema: Any) -> Iterator[tuple[str, Callable[[_Cursor], _Column]]]:
    for each in schema["fields"]:
        yield each["name"], _find_reader(each["type"])


def _find_reader(type_: Any) -> Callable[[_Cursor], _Column]:
    if type_ == "string":
        return _read_text
    if type_ == ["null", "string"]:
        return _read_text_or_null
    if type_ == ["null", "int"]:
        return _read_int_or_null
    if type_ == {"type": "array", "items": "int"}:
        return _read_list
    if type_ == {"type": "map", "values": "int"}:
        return _read_map
    if isinstance(type_, dict) and type_.get("logicalType") == "timestamp-millis":
        return _read_time
    if isinstance(type_, str) and type_ in _MOST_BYTES:
        return lambda cursor: _read_number(cursor, type_)
    raise ValueError(f"no reader for the Avro type {type_}")


def _read_number(cursor: _Cursor, type_: str) -> _Column:
    numbers = cursor.read_numbers(type_)
    arrow = pa.int32() if type_ == "int" else pa.int64()
    return lambda rows: pa.array(numbers[rows]).cast(arrow)


def _read_time(cursor: _Cursor) -> _Column:
    times_ms = cursor.read_numbers("long")
    cursor.is_plain &= (times_ms >= _FIRST_MS) & (times_ms <= _LAST_MS)
    return lambda rows: pa.array(times_ms[rows] * 1000).cast(pa.timestamp("us", "UTC"))


#: 2 January of the year 1, and 30 December 9999: the times that every reader of a table has.
_FIRST_MS, _LAST_MS = -62_135_510_400_000, 253_402_128_000_000


def _read_int_or_null(cursor: _Cursor) -> _Column:
    has_number = cursor.read_branches()
    numbers = cursor.read_numbers("int", has_number)
    return lambda rows: pa.array(numbers[rows], mask=~has_number[rows]).cast(pa.int32())


def _read_text(cursor: _Cursor) -> _Column:
    begins, sizes = cursor.read_texts()
    return lambda rows: _build_texts(cursor.data, begins[rows], sizes[rows])


def _read_text_or_null(cursor: _Cursor) -> _Column:
    has_text = cursor.read_branches()
    begins, sizes = cursor.read_texts(has_text)

    def build(rows: Ints) -> pa.Array:
        texts = _build_texts(cursor.data, begins[rows], np.where(has_text, sizes, 0)[rows])
        return pc.if_else(pa.array(has_text[rows]), texts, None)

    return build


def _read_list(cursor: _Cursor) -> _Column:
    firsts, sizes = cursor.read_lists()
    rows = np.flatnonzero(cursor.is_plain & (sizes > 0))
    positions = _concatenate_ranges(firsts[rows], sizes[rows])
    lasts = cursor.final_bytes[positions]
    begins = np.where(positions > 0, cursor.final_bytes[np.maximum(positions - 1, 0)] + 1, 0)
    numbers, is_valid = _decode_numbers(cursor.data, begins, lasts, "int")
    owners = np.repeat(rows, sizes[rows])
    cursor.is_plain[owners[~is_valid]] = False
    starts = np.zeros(len(sizes), np.int64)
    starts[rows] = np.cumsum(sizes[rows]) - sizes[rows]

    def build(chosen: Ints) -> pa.Array:
        kept = sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)
        values = numbers[_concatenate_ranges(starts[chosen], kept)].astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))

    return build


def _read_map(cursor: _Cursor) -> _Column:
    entries = [np.empty((4, 0), np.int64)]
    entries += [np.stack(entry) for entry in cursor.read_maps()]
    of_all = np.concatenate(entries, axis=1)
    owners, begins, sizes, counts = of_all[:, cursor.is_plain[of_all[0]]]
    codes = _build_texts(cursor.data, begins, sizes).dictionary_encode().indices
    keys = np.sort(pair(owners, np.asarray(codes, np.int64)))
    repeated, _ = unpair(keys[1:][keys[1:] == keys[:-1]])
    cursor.is_plain[repeated] = False

    def build(chosen: Ints) -> pa.Array:
        number = np.full(len(cursor.at), -1)
        number[chosen] = np.arange(len(chosen))
        kept = np.flatnonzero(number[owners] >= 0)
        kept = kept[np.argsort(number[owners[kept]], kind="stable")]
        per_row = np.bincount(number[owners[kept]], minlength=len(chosen))
        offsets = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int32)
        codes = _build_texts(cursor.data, begins[kept], sizes[kept])
        return pa.MapArray.from_arrays(pa.array(offsets), codes, pa.array(counts[kept].astype(np.int32)))

    return build


def _build_texts(data: Bytes, begins: Ints, sizes: Ints) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    content = data[_concatenate_ranges(begins, sizes)]
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(content))


def _concatenate_ranges(firsts: Ints, sizes: Ints) -> Ints:
    """Return firsts[0], firsts[0] + 1, ... up to sizes[0] of them, then those of the next."""
    ends = np.cumsum(sizes)
    return np.arange(int(sizes.sum())) + np.repeat(firsts - ends + sizes, sizes)
