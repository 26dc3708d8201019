"""A cold connection to one broker: name, TCP, TLS where it is asked for, and an ApiVersions answer.

It needs no leadership, no password and no other broker, so its silence is the earliest sign of a hang.
"""

import asyncio
import ssl
import struct
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_probes.kafka.silence import (
    Silence,
    in_the_answer,
    in_the_handshake,
    of_a_beginning,
    on_the_way,
)
from fleetgauge_probes.uptime import uptime_ns

_CLIENT_ID = b"fleetgauge-answer"
CORRELATION_ID = 1
_BODY = struct.pack(f">hhih{len(_CLIENT_ID)}s", 18, 0, CORRELATION_ID, len(_CLIENT_ID), _CLIENT_ID)
#: ApiVersions (key 18) version 0, which every broker answers, before it asks who we are.
API_VERSIONS_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
MAX_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """When the broker answered, how long each step took, and until when its certificate is good."""

    at_ns: int
    connect_us: int
    tls_us: int | None
    total_us: int
    certificate_ends: datetime | None


async def cold_answer(host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None) -> Answer | Silence:
    """Connect, ask, hang up, all in that time."""
    started = uptime_ns()
    explain = on_the_way
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            connected = secured = uptime_ns()
            with closing(writer):
                if tls:
                    explain = in_the_handshake
                    await writer.start_tls(tls, server_hostname=host)
                    secured = uptime_ns()
                explain = in_the_answer
                silence = await _ask(reader, writer)
                answered = uptime_ns()
                certificate = writer.get_extra_info("peercert")
    except (OSError, UnicodeError, asyncio.IncompleteReadError) as error:
        return explain(error)
    return silence or Answer(
        at_ns=answered,
        connect_us=(connected - started) // 1000,
        tls_us=(secured - connected) // 1000 if tls else None,
        total_us=(answered - started) // 1000,
        certificate_ends=certificate_ends(certificate),
    )


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Silence | None:
    writer.write(API_VERSIONS_REQUEST)
    head = await reader.readexactly(4)
    (size,) = struct.unpack(">i", head)
    if not 0 <= size <= MAX_ANSWER_BYTES:
        return of_a_beginning(head) or Silence.NOT_KAFKA
    await reader.readexactly(size)
    return None


def certificate_ends(certificate: dict[str, Any] | None) -> datetime | None:
    """As ssl's ``getpeercert`` has it; None without one."""
    if not certificate:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
