"""Check that a mirror replicates: write a heartbeat to the source and look for it in the target.

MirrorMaker replicates every topic named ``heartbeats`` to ``SOURCE.heartbeats`` and keeps record timestamps.
So a single ListOffsets request by timestamp tells whether a recent heartbeat was replicated. Heartbeats have
MirrorMaker's own format, so that its tools can read them.
"""

import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from fleetgauge_local.kafka_protocol import encode_array, encode_string, send_request
from fleetgauge_local.layout import ReplicationRoute

Address = tuple[str, int]

_TOPIC = "heartbeats"
_RESPONSE_TIMEOUT_S = 1.0
# API keys and versions of the requests; these versions have no tagged fields.
_PRODUCE, _LIST_OFFSETS, _CREATE_TOPICS = (0, 3), (2, 1), (19, 2)
_PARTITION = struct.pack(">i", 0)
_POLYNOMIAL = 0x82F63B78


def has_replicated_since(
    route: ReplicationRoute, source: Sequence[Address], target: Sequence[Address], since_ms: int
) -> bool:
    """Return whether the target holds a heartbeat of this route written at or after ``since_ms``.

    If not, a new heartbeat is written to the source, to be found by a later call. ``source`` and ``target``
    are the addresses of each cluster's brokers.
    """
    replica_topic = f"{route.source}.{_TOPIC}"
    if any(_has_record_since(address, replica_topic, since_ms) for address in target):
        return True
    batch = _encode_batch(_encode_key(route), _now_ms())
    if not any(_write_heartbeat(address, batch) for address in source):
        _create_topic(source[0])
    return False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _encode_key(route: ReplicationRoute) -> bytes:
    """Return the heartbeat key as MirrorMaker writes it for the reverse flow, from target to source."""
    return encode_string(route.target) + encode_string(route.source)


def _has_record_since(address: Address, topic: str, since_ms: int) -> bool:
    partitions = encode_array(_PARTITION + struct.pack(">q", since_ms))
    body = struct.pack(">i", -1) + encode_array(encode_string(topic) + partitions)
    try:
        response = send_request(address, *_LIST_OFFSETS, body, _RESPONSE_TIMEOUT_S)
        # With one topic and one partition, the response ends with error code, timestamp and offset.
        error, _, offset = struct.unpack(">hqq", response[-18:])
    except (OSError, struct.error):
        return False
    return bool(error == 0 and offset >= 0)


def _write_heartbeat(address: Address, batch: bytes) -> bool:
    """Return whether the broker accepted the batch; false if it is not the leader of the partition."""
    records = encode_array(_PARTITION + struct.pack(">i", len(batch)) + batch)
    no_transaction, acks, timeout_ms = -1, 1, int(_RESPONSE_TIMEOUT_S * 1000)
    body = struct.pack(">hhi", no_transaction, acks, timeout_ms) + encode_array(
        encode_string(_TOPIC) + records
    )
    try:
        response = send_request(address, *_PRODUCE, body, _RESPONSE_TIMEOUT_S)
        # With one topic and one partition, it ends with error code, offset, timestamp and throttle time.
        error, *_ = struct.unpack(">hqqi", response[-22:])
    except (OSError, struct.error):
        return False
    return bool(error == 0)


def _create_topic(address: Address) -> None:
    """Create the topic with the cluster's default replication factor; errors are ignored."""
    partitions, replication_factor = 1, -1
    topic = (
        encode_string(_TOPIC)
        + struct.pack(">ih", partitions, replication_factor)
        + encode_array()
        + encode_array()
    )
    timeout_ms, only_validate = int(_RESPONSE_TIMEOUT_S * 1000), False
    with suppress(OSError):
        send_request(
            address,
            *_CREATE_TOPICS,
            encode_array(topic) + struct.pack(">i?", timeout_ms, only_validate),
            _RESPONSE_TIMEOUT_S,
        )


def _encode_batch(key: bytes, at_ms: int) -> bytes:
    """Return a record batch (magic 2) with one MirrorMaker heartbeat: a schema version and the timestamp."""
    value = struct.pack(">hq", 0, at_ms)
    record = (
        b"\0\0\0" + _encode_varint(len(key)) + key + _encode_varint(len(value)) + value + _encode_varint(0)
    )
    no_producer = struct.pack(">qhi", -1, -1, -1)
    checksummed = (
        struct.pack(">hiqq", 0, 0, at_ms, at_ms)
        + no_producer
        + encode_array(_encode_varint(len(record)) + record)
    )
    epoch_and_magic = struct.pack(">ib", -1, 2)
    body = epoch_and_magic + struct.pack(">I", crc32c(checksummed)) + checksummed
    return struct.pack(">qi", 0, len(body)) + body


def _encode_varint(value: int) -> bytes:
    """Return a non-negative number as a zigzag varint: seven bits per byte, lowest first."""
    remaining = value << 1
    encoded = bytearray()
    while remaining > 0x7F:
        encoded.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    encoded.append(remaining)
    return bytes(encoded)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) checksum, computed bit by bit: a heartbeat has about fifty bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
