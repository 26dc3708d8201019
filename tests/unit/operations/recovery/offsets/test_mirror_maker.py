"""Offset syncs of MirrorMaker 2 are decoded, and malformed ones reported."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.mirror_maker import (
    MalformedReason,
    MalformedRecord,
    OffsetSync,
    decode_offset_sync,
)
from tests.unit.operations.recovery import wire

OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def test_an_offset_sync_in_kafkas_format_is_decoded() -> None:
    key = bytes.fromhex("0006 6f7264657273 00000002")
    value = bytes.fromhex("0000000000000096 00000000000000fb")
    assert decode_offset_sync(key, value) == OffsetSync("orders", 2, 150, 251)


@given(NAMES, PARTITIONS, OFFSETS, OFFSETS)
def test_any_offset_sync_round_trips(topic: str, partition: int, upstream: int, downstream: int) -> None:
    written = wire.encode_offset_sync(topic, partition, upstream, downstream)
    assert decode_offset_sync(*written) == OffsetSync(topic, partition, upstream, downstream)


KEY, VALUE = wire.encode_offset_sync("orders", 2, 150, 251)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, VALUE, MalformedReason.NO_KEY),
        (KEY, None, MalformedReason.DELETED),
        (KEY[:-1], VALUE, MalformedReason.TOO_SHORT),
        (KEY, VALUE[:-1], MalformedReason.TOO_SHORT),
        (b"", b"", MalformedReason.TOO_SHORT),
        (KEY + b"\0", VALUE, MalformedReason.TRAILING_BYTES),
        (KEY, VALUE + b"\0", MalformedReason.TRAILING_BYTES),
        (pack(">hi", -1, 0), VALUE, MalformedReason.NEGATIVE),
        (wire.encode_string("t") + pack(">i", -1), VALUE, MalformedReason.NEGATIVE),
        (KEY, pack(">qq", -1, 0), MalformedReason.NEGATIVE),
        (KEY, pack(">qq", 0, -1), MalformedReason.NEGATIVE),
        (pack(">h", 1) + b"\xff" + pack(">i", 0), VALUE, MalformedReason.NOT_TEXT),
    ],
)
def test_a_malformed_record_is_reported_with_its_reason(
    key: bytes | None, value: bytes | None, reason: MalformedReason
) -> None:
    refusal = decode_offset_sync(key, value)
    assert isinstance(refusal, MalformedRecord)
    assert refusal.reason is reason
    assert refusal.detail


@given(st.binary(max_size=80) | st.none(), st.binary(max_size=80) | st.none())
def test_arbitrary_bytes_never_raise(key: bytes | None, value: bytes | None) -> None:
    assert isinstance(decode_offset_sync(key, value), OffsetSync | MalformedRecord)


@given(st.data())
def test_a_record_with_a_changed_byte_never_raises(data: st.DataObject) -> None:
    changed = [bytearray(KEY), bytearray(VALUE)]
    part = data.draw(st.sampled_from(changed))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    assert isinstance(decode_offset_sync(*map(bytes, changed)), OffsetSync | MalformedRecord)
