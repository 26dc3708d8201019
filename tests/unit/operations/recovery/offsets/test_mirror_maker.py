from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.mirror_maker import (
    GroupCheckpoint,
    MalformedReason,
    MalformedRecord,
    MirrorHeartbeat,
    OffsetSync,
    decode_group_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
)
from tests.unit.operations.recovery import wire

Read = Callable[[bytes | None, bytes | None], object]
READERS: tuple[Read, ...] = (decode_offset_sync, decode_group_checkpoint, decode_heartbeat)
OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def test_an_offset_sync_in_kafkas_format_is_decoded() -> None:
    key = bytes.fromhex("0006 6f7264657273 00000002")
    value = bytes.fromhex("0000000000000096 00000000000000fb")
    assert decode_offset_sync(key, value) == OffsetSync("orders", 2, 150, 251)


def test_a_group_checkpoint_in_kafkas_format_is_decoded() -> None:
    key = bytes.fromhex("0001 67 0003 612e74 00000000")
    value = bytes.fromhex("0000 0000000000000005 0000000000000007 0000")
    assert decode_group_checkpoint(key, value) == GroupCheckpoint("g", "a.t", 0, 5, 7, "")


def test_a_heartbeat_in_kafkas_format_is_decoded() -> None:
    key, value = bytes.fromhex("0002 6575 0002 7573"), bytes.fromhex("0000 0000019cbcf7a600")
    assert decode_heartbeat(key, value) == MirrorHeartbeat("eu", "us", 1_772_696_872_448)


@given(NAMES, PARTITIONS, OFFSETS, OFFSETS)
def test_any_offset_sync_round_trips(topic: str, partition: int, upstream: int, downstream: int) -> None:
    written = wire.encode_offset_sync(topic, partition, upstream, downstream)
    assert decode_offset_sync(*written) == OffsetSync(topic, partition, upstream, downstream)


@given(NAMES, NAMES, PARTITIONS, OFFSETS, OFFSETS, NAMES)
def test_any_group_checkpoint_round_trips(
    group: str, topic: str, partition: int, upstream: int, downstream: int, metadata: str
) -> None:
    written = wire.encode_group_checkpoint(group, topic, partition, upstream, downstream, metadata)
    assert decode_group_checkpoint(*written) == GroupCheckpoint(
        group, topic, partition, upstream, downstream, metadata
    )


@given(NAMES, NAMES, OFFSETS)
def test_any_heartbeat_round_trips(source: str, target: str, timestamp_ms: int) -> None:
    assert decode_heartbeat(*wire.encode_heartbeat(source, target, timestamp_ms)) == MirrorHeartbeat(
        source, target, timestamp_ms
    )


KEY, VALUE = wire.encode_offset_sync("orders", 2, 150, 251)
CHECKPOINT = wire.encode_group_checkpoint("g", "t", 0, 5, 7, "")


@pytest.mark.parametrize(
    ("read", "key", "value", "reason"),
    [
        (decode_offset_sync, None, VALUE, MalformedReason.NO_KEY),
        (decode_offset_sync, KEY, None, MalformedReason.DELETED),
        (decode_offset_sync, KEY[:-1], VALUE, MalformedReason.TOO_SHORT),
        (decode_offset_sync, KEY, VALUE[:-1], MalformedReason.TOO_SHORT),
        (decode_offset_sync, b"", b"", MalformedReason.TOO_SHORT),
        (decode_offset_sync, KEY + b"\0", VALUE, MalformedReason.TRAILING_BYTES),
        (decode_offset_sync, KEY, VALUE + b"\0", MalformedReason.TRAILING_BYTES),
        (decode_offset_sync, pack(">hi", -1, 0), VALUE, MalformedReason.NEGATIVE),
        (decode_offset_sync, wire.text("t") + pack(">i", -1), VALUE, MalformedReason.NEGATIVE),
        (decode_offset_sync, KEY, pack(">qq", -1, 0), MalformedReason.NEGATIVE),
        (decode_offset_sync, KEY, pack(">qq", 0, -1), MalformedReason.NEGATIVE),
        (decode_offset_sync, pack(">h", 1) + b"\xff" + pack(">i", 0), VALUE, MalformedReason.NOT_TEXT),
        (
            decode_group_checkpoint,
            CHECKPOINT[0],
            pack(">h", 1) + CHECKPOINT[1][2:],
            MalformedReason.UNKNOWN_VERSION,
        ),
        (
            decode_heartbeat,
            wire.encode_heartbeat("a", "b", 1)[0],
            pack(">hq", 7, 1),
            MalformedReason.UNKNOWN_VERSION,
        ),
    ],
)
def test_a_malformed_record_is_reported_with_its_reason(
    read: Read, key: bytes | None, value: bytes | None, reason: MalformedReason
) -> None:
    refusal = read(key, value)
    assert isinstance(refusal, MalformedRecord)
    assert refusal.reason is reason
    assert refusal.detail


@given(st.sampled_from(READERS), st.binary(max_size=80) | st.none(), st.binary(max_size=80) | st.none())
def test_arbitrary_bytes_never_raise(read: Read, key: bytes | None, value: bytes | None) -> None:
    assert isinstance(read(key, value), OffsetSync | GroupCheckpoint | MirrorHeartbeat | MalformedRecord)


@given(st.sampled_from(READERS), st.data())
def test_a_record_with_a_changed_byte_never_raises(read: Read, data: st.DataObject) -> None:
    changed = [bytearray(part) for part in data.draw(st.sampled_from([(KEY, VALUE), CHECKPOINT]))]
    part = data.draw(st.sampled_from(changed))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    assert read(*map(bytes, changed)) is not None
