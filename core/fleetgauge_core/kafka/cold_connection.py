"""A new connection to one broker, with the time of each step: DNS, TCP, TLS and an ApiVersions response.

It needs no partition leader, no credentials and no other broker, so its failure is the earliest sign of a
broker that hangs.
"""

import asyncio
import socket
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from fleetgauge_core.kafka.api_versions import (
    API_VERSIONS_REQUEST,
    parse_certificate_expiry,
)
from fleetgauge_core.kafka.connection_failure import (
    ConnectionFailure,
    classify_connect_error,
    classify_handshake_error,
    classify_response_error,
    parse_response_size,
)
from fleetgauge_core.runtime.uptime import uptime_ns


@dataclass(frozen=True, slots=True)
class ConnectionMeasurement:
    """A successful connection: the uptime at the response, each step's duration, the certificate's expiry.

    ``dns_us`` is None if the broker is advertised by IP address, ``tls_us`` without TLS.
    """

    at_ns: int
    dns_us: int | None
    connect_us: int
    tls_us: int | None
    total_us: int
    certificate_expires_at: datetime | None


async def measure_cold_connection(
    host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None
) -> ConnectionMeasurement | ConnectionFailure:
    """Connect, exchange ApiVersions and disconnect, within ``timeout_s`` in total."""
    started_ns = uptime_ns()
    classify = classify_connect_error
    try:
        async with asyncio.timeout(timeout_s):
            addresses = await _resolve(host, port)
            resolved_ns = uptime_ns()
            reader, writer = await _connect(addresses or [(host, port)])
            connected_ns = secured_ns = uptime_ns()
            with closing(writer):
                if tls:
                    classify = classify_handshake_error
                    await writer.start_tls(tls, server_hostname=host)
                    secured_ns = uptime_ns()
                classify = classify_response_error
                failure = await _exchange(reader, writer)
                answered_ns = uptime_ns()
                certificate = writer.get_extra_info("peercert")
    except (OSError, UnicodeError, asyncio.IncompleteReadError) as error:
        return classify(error)
    return failure or ConnectionMeasurement(
        at_ns=answered_ns,
        dns_us=(resolved_ns - started_ns) // 1000 if addresses else None,
        connect_us=(connected_ns - resolved_ns) // 1000,
        tls_us=(secured_ns - connected_ns) // 1000 if tls else None,
        total_us=(answered_ns - started_ns) // 1000,
        certificate_expires_at=parse_certificate_expiry(certificate),
    )


async def _resolve(host: str, port: int) -> list[tuple[str, int]]:
    """Return the addresses of a host name; none for an IP address. Raises: OSError, UnicodeError."""
    with suppress(ValueError):
        ip_address(host)
        return []
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(address[0], address[1]) for *_, address in entries]


async def _connect(addresses: list[tuple[str, int]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts. Raises: the last address's OSError if none does."""
    for address in addresses[:-1]:
        with suppress(OSError):
            return await asyncio.open_connection(*address)
    return await asyncio.open_connection(*addresses[-1])


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ConnectionFailure | None:
    """Send ApiVersions and read the response; return why it is not a Kafka response, else None."""
    writer.write(API_VERSIONS_REQUEST)
    size = parse_response_size(await reader.readexactly(4))
    if isinstance(size, ConnectionFailure):
        return size
    await reader.readexactly(size)
    return None
