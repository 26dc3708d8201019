"""Whether a mirror copies: a heartbeat is written at the source and looked for behind the mirror.

MirrorMaker takes every topic of that name along, calls the copy after the source, and keeps the records'
times. So whether a heartbeat of now has come through is one question to the target. They have
MirrorMaker's own form: whoever knows those can read these.
"""

import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from fleetgauge_local.layout import Route
from fleetgauge_local.wire import array, ask, text

Address = tuple[str, int]

_TOPIC = "heartbeats"
_ANSWER_S = 1.0
# Kafka's numbers for requests, and the versions of them that need no tagged fields.
_PRODUCE, _LIST_OFFSETS, _CREATE_TOPICS = (0, 3), (2, 1), (19, 2)
_PARTITION = struct.pack(">i", 0)
_POLYNOMIAL = 0x82F63B78


def has_come_through(
    route: Route, source: Sequence[Address], target: Sequence[Address], since_ms: int
) -> bool:
    """Whether the target has a heartbeat that was written since then; if not, another is on its way.

    ``source`` and ``target`` are the addresses of each cluster's brokers.
    """
    copy = f"{route.source}.{_TOPIC}"
    if any(_has_record_since(address, copy, since_ms) for address in target):
        return True
    batch = _batch(_key(route), _now_ms())
    if not any(_write(address, batch) for address in source):
        _make_topic(source[0])
    return False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _key(route: Route) -> bytes:
    """As the worker of the way back would write it: from the mirror's target to its source."""
    return text(route.target) + text(route.source)


def _has_record_since(address: Address, topic: str, since_ms: int) -> bool:
    wanted = array(_PARTITION + struct.pack(">q", since_ms))
    question = struct.pack(">i", -1) + array(text(topic) + wanted)
    try:
        answer = ask(address, *_LIST_OFFSETS, question, _ANSWER_S)
        # One topic with one partition: its number, error, time and offset end the answer.
        error, _, offset = struct.unpack(">hqq", answer[-18:])
    except (OSError, struct.error):
        return False
    return bool(error == 0 and offset >= 0)


def _write(address: Address, batch: bytes) -> bool:
    """Whether the broker has taken it; one that does not lead the topic, or knows none, has not."""
    records = array(_PARTITION + struct.pack(">i", len(batch)) + batch)
    no_transaction, acks, timeout_ms = -1, 1, int(_ANSWER_S * 1000)
    question = struct.pack(">hhi", no_transaction, acks, timeout_ms) + array(text(_TOPIC) + records)
    try:
        answer = ask(address, *_PRODUCE, question, _ANSWER_S)
        # One topic with one partition: its error, offset and time, and how long it throttles, end it.
        error, *_ = struct.unpack(">hqqi", answer[-22:])
    except (OSError, struct.error):
        return False
    return bool(error == 0)


def _make_topic(address: Address) -> None:
    """With the cluster's own number of copies; whether it came about shows in the next heartbeat."""
    partitions, copies = 1, -1
    topic = text(_TOPIC) + struct.pack(">ih", partitions, copies) + array() + array()
    timeout_ms, only_validate = int(_ANSWER_S * 1000), False
    with suppress(OSError):
        ask(address, *_CREATE_TOPICS, array(topic) + struct.pack(">i?", timeout_ms, only_validate), _ANSWER_S)


def _batch(key: bytes, at_ms: int) -> bytes:
    """One record in Kafka's format 2: MirrorMaker's heartbeat, which is a version and the time again."""
    value = struct.pack(">hq", 0, at_ms)
    record = b"\0\0\0" + _varint(len(key)) + key + _varint(len(value)) + value + _varint(0)
    no_producer = struct.pack(">qhi", -1, -1, -1)
    rest = struct.pack(">hiqq", 0, 0, at_ms, at_ms) + no_producer + array(_varint(len(record)) + record)
    epoch_and_format = struct.pack(">ib", -1, 2)
    body = epoch_and_format + struct.pack(">I", crc32c(rest)) + rest
    return struct.pack(">qi", 0, len(body)) + body


def _varint(value: int) -> bytes:
    """Of a small number that is not negative: zigzag, seven bits a byte, the lowest first."""
    left = value << 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, bit by bit: a heartbeat has some fifty bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
