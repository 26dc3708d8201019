"""A cold connection to one broker: name, TCP, TLS where it is asked for, and an ApiVersions answer.

It needs no leadership, no password and no other broker, so its silence is the earliest sign of a hang.
"""

import asyncio
import socket
import ssl
import struct
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

from fleetgauge_core.kafka.connection_failure import (
    Silence,
    in_the_answer,
    in_the_handshake,
    of_a_beginning,
    on_the_way,
)
from fleetgauge_core.runtime.uptime import uptime_ns

_CLIENT_ID = b"fleetgauge-answer"
CORRELATION_ID = 1
_BODY = struct.pack(f">hhih{len(_CLIENT_ID)}s", 18, 0, CORRELATION_ID, len(_CLIENT_ID), _CLIENT_ID)
#: ApiVersions (key 18) version 0, which every broker answers, before it asks who we are.
API_VERSIONS_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
MAX_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """When the broker answered, how long each step took, and until when its certificate is good.

    ``dns_us`` is None where the broker is advertised by its address, ``tls_us`` without TLS.
    """

    at_ns: int
    dns_us: int | None
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
            addresses = await _resolved(host, port)
            resolved = uptime_ns()
            reader, writer = await _connected(addresses or [(host, port)])
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
        dns_us=(resolved - started) // 1000 if addresses else None,
        connect_us=(connected - resolved) // 1000,
        tls_us=(secured - connected) // 1000 if tls else None,
        total_us=(answered - started) // 1000,
        certificate_ends=certificate_ends(certificate),
    )


async def _resolved(host: str, port: int) -> list[tuple[str, int]]:
    """The addresses of a name; none for what is an address already. Raises OSError, UnicodeError."""
    with suppress(ValueError):
        ip_address(host)
        return []
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(address[0], address[1]) for *_, address in found]


async def _connected(addresses: list[tuple[str, int]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the first that takes connections. Raises the last one's OSError."""
    for address in addresses[:-1]:
        with suppress(OSError):
            return await asyncio.open_connection(*address)
    return await asyncio.open_connection(*addresses[-1])


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
