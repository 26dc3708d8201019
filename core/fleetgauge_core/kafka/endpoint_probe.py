"""A probe of one HOST:PORT: whether a Kafka listener answers there, after which steps, and if not, the cause.

A probe is a cold connection: DNS, TCP, TLS and an ApiVersions response. It needs no partition leader, no
credentials and no other broker, so its failure is the earliest sign of a broker that hangs. A Kafka client
fails over between the addresses of a cluster; a probe tests one, so that a failing one can be reported.
"""

import asyncio
import selectors
import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.kafka.api_versions import (
    API_VERSIONS_REQUEST,
    KafkaVersion,
    parse_certificate_validity,
    parse_kafka_version,
)
from fleetgauge_core.kafka.connection_failure import (
    ConnectionFailure,
    choose_connect_error,
    classify_connect_error,
    classify_handshake_error,
    classify_response_error,
    is_own_resource_error,
    parse_response_size,
)
from fleetgauge_core.kafka.name_resolver import NameResolver
from fleetgauge_core.runtime.uptime import uptime_ns

_DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """A broker's response to a probe: its Kafka version, and its certificate's validity (None: no TLS)."""

    kafka_version: KafkaVersion
    certificate_expires_at: datetime | None = None
    certificate_valid_from: datetime | None = None


EndpointProbeResult = EndpointResponse | ConnectionFailure


@dataclass(frozen=True, slots=True)
class ConnectionMeasurement:
    """A successful probe: the uptime at the response, the duration of each step, and the response.

    ``dns_us`` is None if the broker is advertised by IP address, ``tls_us`` without TLS.
    """

    at_ns: int
    dns_us: int | None
    connect_us: int
    tls_us: int | None
    total_us: int
    response: EndpointResponse


@dataclass(frozen=True, slots=True)
class ProbeTimeouts:
    """Limits of a probe in seconds: of the whole, and of each step after the lookup of the name.

    The steps are connecting to one IP address, the TLS handshake, and waiting for the response.
    """

    total_s: float
    step_s: float


#: The limits of a probe that precedes another request: a name may be looked up slowly, or resolve to a dead
#: address.
_DEFAULT_TIMEOUTS = ProbeTimeouts(total_s=2.5, step_s=1.0)


def parse_bootstrap(bootstrap: str) -> tuple[str, ...]:
    """Return each HOST:PORT of a ``bootstrap.servers`` value; the port is 9092 unless given."""
    addresses = (address.strip() for address in bootstrap.split(","))
    return tuple(address if _has_port(address) else f"{address}:{_DEFAULT_PORT}" for address in addresses)


def probe_endpoints(
    addresses: Iterable[str], tls: ssl.SSLContext | None, timeouts: ProbeTimeouts = _DEFAULT_TIMEOUTS
) -> dict[str, EndpointProbeResult]:
    """Probe all addresses at once and wait; return the result by HOST:PORT within the total time-out."""
    distinct = tuple(dict.fromkeys(addresses))
    try:
        _ensure_loop_can_open()
        with asyncio.Runner() as runner:
            results = runner.run(_probe_addresses(distinct, tls, timeouts))
    except OSError as error:
        if not is_own_resource_error(error):
            raise
        return dict.fromkeys(distinct, ConnectionFailure.OWN_RESOURCES)
    return dict(zip(distinct, results, strict=True))


def _ensure_loop_can_open() -> None:
    """Open and close the files of an event loop, because one that cannot open them prints a traceback.

    Raises: OSError.
    """
    with selectors.DefaultSelector():
        for end in socket.socketpair():
            end.close()


async def _probe_addresses(
    addresses: Sequence[str], tls: ssl.SSLContext | None, timeouts: ProbeTimeouts
) -> list[EndpointProbeResult]:
    resolver = NameResolver()
    return await asyncio.gather(*(_probe_address(address, tls, timeouts, resolver) for address in addresses))


async def _probe_address(
    address: str, tls: ssl.SSLContext | None, timeouts: ProbeTimeouts, resolver: NameResolver
) -> EndpointProbeResult:
    name, _, port = address.rpartition(":")
    result = await probe_endpoint(name.strip("[]"), int(port), tls, timeouts, resolver)
    return result.response if isinstance(result, ConnectionMeasurement) else result


async def probe_endpoint(
    host: str, port: int, tls: ssl.SSLContext | None, timeouts: ProbeTimeouts, resolver: NameResolver
) -> ConnectionMeasurement | ConnectionFailure:
    """Connect, exchange ApiVersions and disconnect; return the measurement, or the cause of the failure."""
    started_ns = uptime_ns()
    classify = classify_connect_error
    try:
        async with asyncio.timeout(timeouts.total_s):
            addresses = await resolver.resolve(host)
            resolved_ns = uptime_ns()
            reader, writer = await connect_to_first(addresses or [host], port, timeouts.step_s)
            connected_ns = secured_ns = uptime_ns()
            with _aborting(writer):
                if tls:
                    classify = classify_handshake_error
                    async with asyncio.timeout(timeouts.step_s):
                        await writer.start_tls(tls, server_hostname=host)
                    secured_ns = uptime_ns()
                classify = classify_response_error
                async with asyncio.timeout(timeouts.step_s):
                    frame = await exchange_api_versions(reader, writer)
                answered_ns = uptime_ns()
                certificate = writer.get_extra_info("peercert")
        if isinstance(frame, ConnectionFailure):
            return frame
        valid_from, expires_at = parse_certificate_validity(certificate)
        response = EndpointResponse(parse_kafka_version(frame), expires_at, valid_from)
    except (OSError, UnicodeError, asyncio.IncompleteReadError, struct.error, MemoryError) as error:
        return ConnectionFailure.OWN_RESOURCES if is_own_resource_error(error) else classify(error)
    return ConnectionMeasurement(
        at_ns=answered_ns,
        dns_us=(resolved_ns - started_ns) // 1000 if addresses else None,
        connect_us=(connected_ns - resolved_ns) // 1000,
        tls_us=(secured_ns - connected_ns) // 1000 if tls else None,
        total_us=(answered_ns - started_ns) // 1000,
        response=response,
    )


async def connect_to_first(
    addresses: Sequence[str], port: int, timeout_s: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts in time. Raises: the most telling OSError if none does."""
    errors: dict[str, OSError] = {}
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.open_connection(address, port)
        except OSError as error:
            errors[address] = error
    raise choose_connect_error(errors)


async def exchange_api_versions(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes | ConnectionFailure:
    """Send ApiVersions; return the response without its size, or why it is not one of Kafka."""
    writer.write(API_VERSIONS_REQUEST)
    size = parse_response_size(await reader.readexactly(4))
    return size if isinstance(size, ConnectionFailure) else await reader.readexactly(size)


@contextmanager
def _aborting(writer: asyncio.StreamWriter) -> Iterator[None]:
    """Close the connection at once at the end: closing TLS in order would wait for a broker that hangs."""
    try:
        yield
    finally:
        writer.transport.abort()


def _has_port(address: str) -> bool:
    return address.rpartition(":")[2].isdigit() and not address.endswith("]")
