from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.mirror_maker import (
    GroupCheckpoint,
    Heartbeat,
    OffsetSync,
    Reason,
    Refusal,
    group_checkpoint,
    heartbeat,
    offset_sync,
)
from tests.unit.operations.recovery import wire

Read = Callable[[bytes | None, bytes | None], object]
READERS: tuple[Read, ...] = (offset_sync, group_checkpoint, heartbeat)
OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def test_an_offset_sync_is_read_as_kafka_writes_it() -> None:
    key = bytes.fromhex("0006 6f7264657273 00000002")
    value = bytes.fromhex("0000000000000096 00000000000000fb")
    assert offset_sync(key, value) == OffsetSync("orders", 2, 150, 251)


def test_a_checkpoint_of_a_group_is_read_as_kafka_writes_it() -> None:
    key = bytes.fromhex("0001 67 0003 612e74 00000000")
    value = bytes.fromhex("0000 0000000000000005 0000000000000007 0000")
    assert group_checkpoint(key, value) == GroupCheckpoint("g", "a.t", 0, 5, 7, "")


def test_a_heartbeat_is_read_as_kafka_writes_it() -> None:
    key, value = bytes.fromhex("0002 6575 0002 7573"), bytes.fromhex("0000 0000019cbcf7a600")
    assert heartbeat(key, value) == Heartbeat("eu", "us", 1_772_696_872_448)


@given(NAMES, PARTITIONS, OFFSETS, OFFSETS)
def test_any_offset_sync_is_read_back(topic: str, partition: int, upstream: int, downstream: int) -> None:
    written = wire.offset_sync(topic, partition, upstream, downstream)
    assert offset_sync(*written) == OffsetSync(topic, partition, upstream, downstream)


@given(NAMES, NAMES, PARTITIONS, OFFSETS, OFFSETS, NAMES)
def test_any_checkpoint_of_a_group_is_read_back(
    group: str, topic: str, partition: int, upstream: int, downstream: int, metadata: str
) -> None:
    written = wire.group_checkpoint(group, topic, partition, upstream, downstream, metadata)
    assert group_checkpoint(*written) == GroupCheckpoint(
        group, topic, partition, upstream, downstream, metadata
    )


@given(NAMES, NAMES, OFFSETS)
def test_any_heartbeat_is_read_back(source: str, target: str, timestamp_ms: int) -> None:
    assert heartbeat(*wire.heartbeat(source, target, timestamp_ms)) == Heartbeat(source, target, timestamp_ms)


KEY, VALUE = wire.offset_sync("orders", 2, 150, 251)
CHECKPOINT = wire.group_checkpoint("g", "t", 0, 5, 7, "")


@pytest.mark.parametrize(
    ("read", "key", "value", "reason"),
    [
        (offset_sync, None, VALUE, Reason.NO_KEY),
        (offset_sync, KEY, None, Reason.DELETED),
        (offset_sync, KEY[:-1], VALUE, Reason.TOO_SHORT),
        (offset_sync, KEY, VALUE[:-1], Reason.TOO_SHORT),
        (offset_sync, b"", b"", Reason.TOO_SHORT),
        (offset_sync, KEY + b"\0", VALUE, Reason.TRAILING_BYTES),
        (offset_sync, KEY, VALUE + b"\0", Reason.TRAILING_BYTES),
        (offset_sync, pack(">hi", -1, 0), VALUE, Reason.NEGATIVE),
        (offset_sync, wire.text("t") + pack(">i", -1), VALUE, Reason.NEGATIVE),
        (offset_sync, KEY, pack(">qq", -1, 0), Reason.NEGATIVE),
        (offset_sync, KEY, pack(">qq", 0, -1), Reason.NEGATIVE),
        (offset_sync, pack(">h", 1) + b"\xff" + pack(">i", 0), VALUE, Reason.NOT_TEXT),
        (group_checkpoint, CHECKPOINT[0], pack(">h", 1) + CHECKPOINT[1][2:], Reason.UNKNOWN_VERSION),
        (heartbeat, wire.heartbeat("a", "b", 1)[0], pack(">hq", 7, 1), Reason.UNKNOWN_VERSION),
    ],
)
def test_what_is_malformed_is_refused_with_its_reason(
    read: Read, key: bytes | None, value: bytes | None, reason: Reason
) -> None:
    refusal = read(key, value)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is reason
    assert refusal.detail


@given(st.sampled_from(READERS), st.binary(max_size=80) | st.none(), st.binary(max_size=80) | st.none())
def test_hostile_bytes_are_answered_and_never_raise(
    read: Read, key: bytes | None, value: bytes | None
) -> None:
    assert isinstance(read(key, value), OffsetSync | GroupCheckpoint | Heartbeat | Refusal)


@given(st.sampled_from(READERS), st.data())
def test_a_record_with_a_byte_changed_is_answered(read: Read, data: st.DataObject) -> None:
    changed = [bytearray(part) for part in data.draw(st.sampled_from([(KEY, VALUE), CHECKPOINT]))]
    part = data.draw(st.sampled_from(changed))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    assert read(*map(bytes, changed)) is not None
