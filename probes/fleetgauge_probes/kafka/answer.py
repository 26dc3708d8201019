"""A cold connection to one broker: name, TCP, and an ApiVersions answer.

It needs no leadership and no other broker, so its silence is the earliest sign of a hang.
"""

import asyncio
import struct
from dataclasses import dataclass

from fleetgauge_probes.uptime import uptime_ns

_CLIENT_ID = b"fleetgauge-answer"
CORRELATION_ID = 1
_BODY = struct.pack(f">hhih{len(_CLIENT_ID)}s", 18, 0, CORRELATION_ID, len(_CLIENT_ID), _CLIENT_ID)
#: ApiVersions (key 18) version 0, which every broker answers.
API_VERSIONS_REQUEST = struct.pack(">i", len(_BODY)) + _BODY


@dataclass(frozen=True, slots=True)
class Answer:
    """When the broker answered and how long each step took."""

    at_ns: int
    connect_us: int
    total_us: int


async def cold_answer(host: str, port: int, timeout_s: float) -> Answer | None:
    """Connect, ask, hang up; None when there was no answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _ask(host, port)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, struct.error):
        return None


async def _ask(host: str, port: int) -> Answer:
    started = uptime_ns()
    reader, writer = await asyncio.open_connection(host, port)
    connected = uptime_ns()
    try:
        writer.write(API_VERSIONS_REQUEST)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        await reader.readexactly(size)
    finally:
        writer.close()
    answered = uptime_ns()
    return Answer(answered, (connected - started) // 1000, (answered - started) // 1000)
