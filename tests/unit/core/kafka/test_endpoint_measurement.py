"""Probes of an endpoint, measured in a loop and awaited by a check, against listeners on real sockets."""

import asyncio
import errno
import gc
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme

from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.endpoint_probe import (
    ConnectionMeasurement,
    EndpointProbeResult,
    EndpointResponse,
    ProbeTimeouts,
    probe_endpoint,
    probe_endpoints,
)
from fleetgauge_core.kafka.name_resolver import NameResolver
from tests.ports import free_port

HOST = "127.0.0.1"
TIMEOUT_S = 5.0
RESPONSE = struct.pack(">ihi", 1, 0, 2) + struct.pack(">hhh", 18, 0, 4) + struct.pack(">hhh", 35, 1, 5)
TRUSTED_AUTHORITY, UNTRUSTED_AUTHORITY = trustme.CA(), trustme.CA()
START, EXPIRY = datetime(2020, 5, 1, tzinfo=UTC), datetime(2040, 5, 1, tzinfo=UTC)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def respond_as_kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1024)
    writer.write(struct.pack(">i", len(RESPONSE)) + RESPONSE)


async def never_respond(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(1024):
        pass


async def respond_as_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1024)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@asynccontextmanager
async def listener(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Yield the port of a listener that handles every connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except OSError:
            pass  # the client has disconnected
        finally:
            writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, HOST, port, ssl=tls):
        yield port


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    TRUSTED_AUTHORITY.configure_trust(context)
    return context


async def measure(
    host: str, port: int, timeout_s: float = TIMEOUT_S, tls: ssl.SSLContext | None = None
) -> ConnectionMeasurement | ConnectionFailure:
    return await probe_endpoint(host, port, tls, ProbeTimeouts(timeout_s, timeout_s), NameResolver())


def connect_both_ways(
    handler: Handler,
    server_tls: ssl.SSLContext | None,
    client_tls: ssl.SSLContext | None,
    host: str = HOST,
) -> tuple[ConnectionMeasurement | ConnectionFailure, EndpointProbeResult]:
    """Return the results of a measured probe and of a check's probe of the same listener."""

    async def connect() -> tuple[ConnectionMeasurement | ConnectionFailure, EndpointProbeResult]:
        async with listener(handler, server_tls) as port:
            timeout_s = TIMEOUT_S if handler is not never_respond else 0.5
            measured = await measure(host, port, timeout_s, client_tls)
            address = f"{host}:{port}"
            checked = await asyncio.to_thread(probe_endpoints, [address], client_tls)
            return measured, checked[address]

    return asyncio.run(connect())


VALID_CERTIFICATE = TRUSTED_AUTHORITY.issue_cert(HOST, "localhost", not_before=START, not_after=EXPIRY)
FUTURE_CERTIFICATE = TRUSTED_AUTHORITY.issue_cert(
    HOST, not_before=datetime.now(UTC) + timedelta(days=1), not_after=EXPIRY
)
EXPIRED_CERTIFICATE = TRUSTED_AUTHORITY.issue_cert(HOST, not_after=datetime.now(UTC) - timedelta(days=1))


@pytest.mark.parametrize(
    ("handler", "server_tls", "client_tls", "failure"),
    [
        (never_respond, None, None, ConnectionFailure.NO_RESPONSE),
        (respond_as_http, None, None, ConnectionFailure.NOT_KAFKA),
        (respond_as_kafka, None, client_context(), ConnectionFailure.TLS_NOT_SUPPORTED),
        (
            respond_as_kafka,
            server_context(EXPIRED_CERTIFICATE),
            client_context(),
            ConnectionFailure.CERTIFICATE_EXPIRED,
        ),
        (
            respond_as_kafka,
            server_context(FUTURE_CERTIFICATE),
            client_context(),
            ConnectionFailure.CERTIFICATE_NOT_YET_VALID,
        ),
        (
            respond_as_kafka,
            server_context(TRUSTED_AUTHORITY.issue_cert("elsewhere.example")),
            client_context(),
            ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH,
        ),
        (
            respond_as_kafka,
            server_context(UNTRUSTED_AUTHORITY.issue_cert(HOST)),
            client_context(),
            ConnectionFailure.CERTIFICATE_UNTRUSTED,
        ),
    ],
    ids=[
        "no response",
        "HTTP",
        "no TLS",
        "expired certificate",
        "certificate that is not valid yet",
        "another host name",
        "untrusted authority",
    ],
)
def test_both_ways_report_the_same_cause_of_a_failure(
    handler: Handler,
    server_tls: ssl.SSLContext | None,
    client_tls: ssl.SSLContext | None,
    failure: ConnectionFailure,
) -> None:
    assert connect_both_ways(handler, server_tls, client_tls) == (failure, failure)


def test_a_measurement_has_the_duration_of_each_step_and_the_expiry_of_the_certificate() -> None:
    measured, probed = connect_both_ways(
        respond_as_kafka, server_context(VALID_CERTIFICATE), client_context(), "localhost"
    )
    assert isinstance(measured, ConnectionMeasurement)
    assert measured.dns_us is not None
    assert measured.tls_us is not None
    assert measured.dns_us + measured.connect_us + measured.tls_us <= measured.total_us
    assert measured.response == probed == EndpointResponse((4, 3), EXPIRY, START)


def test_a_connection_to_an_ip_address_without_tls_has_no_dns_and_no_tls_duration() -> None:
    measured, probed = connect_both_ways(respond_as_kafka, None, None)
    assert isinstance(measured, ConnectionMeasurement)
    assert (measured.dns_us, measured.tls_us) == (None, None)
    assert measured.response == probed == EndpointResponse((4, 3), None)


@pytest.mark.parametrize(
    ("host", "failure"),
    [
        ("no-such-host.invalid", ConnectionFailure.HOST_NOT_FOUND),
        (HOST, ConnectionFailure.CONNECTION_REFUSED),
    ],
)
def test_a_connection_that_cannot_be_opened_has_a_cause(host: str, failure: ConnectionFailure) -> None:
    assert asyncio.run(measure(host, free_port())) is failure


def test_a_probe_connects_to_the_next_address_if_the_first_one_does_not_accept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first address is one at which nothing listens."""
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in ("127.0.0.2", HOST)]
    monkeypatch.setattr(socket, "getaddrinfo", resolve_first(addresses))

    async def connect() -> ConnectionMeasurement | ConnectionFailure:
        async with listener(respond_as_kafka) as port:
            return await measure("kafka.example", port)

    assert isinstance(asyncio.run(connect()), ConnectionMeasurement)


def test_a_broker_that_refuses_at_one_address_refuses_whatever_the_next_one_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in (HOST, "2001:db8::1")]
    monkeypatch.setattr(socket, "getaddrinfo", resolve_first(addresses))
    open_connection = asyncio.open_connection

    async def open_on_ipv4(host: str, port: int) -> Any:
        if host != HOST:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return await open_connection(host, port)

    monkeypatch.setattr(asyncio, "open_connection", open_on_ipv4)
    assert asyncio.run(measure("kafka.example", free_port())) is ConnectionFailure.CONNECTION_REFUSED


def test_a_step_that_takes_too_long_ends_the_probe_before_its_whole_time_is_over() -> None:
    async def connect() -> ConnectionMeasurement | ConnectionFailure:
        async with listener(never_respond) as port:
            timeouts = ProbeTimeouts(total_s=3600, step_s=0.1)
            return await probe_endpoint(HOST, port, None, timeouts, NameResolver())

    assert asyncio.run(connect()) is ConnectionFailure.NO_RESPONSE


@contextmanager
def hang_after_handshake() -> Iterator[str]:
    """Yield the HOST:PORT of a listener that hangs once the TLS handshake is complete."""
    is_over = threading.Event()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with server_context(VALID_CERTIFICATE).wrap_socket(connection, server_side=True):
                is_over.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"localhost:{server.getsockname()[1]}"
        is_over.set()
        thread.join()


def test_a_check_leaves_no_connection_open_to_a_broker_that_hangs(recwarn: pytest.WarningsRecorder) -> None:
    with hang_after_handshake() as address:
        result = probe_endpoints([address], client_context())[address]
        gc.collect()
    assert result is ConnectionFailure.NO_RESPONSE
    assert [str(warning.message) for warning in recwarn] == []


def resolve_first(addresses: list[Any]) -> Callable[..., Any]:
    """Return a getaddrinfo that resolves the name of these tests to addresses, and all others as usual."""
    getaddrinfo = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **options: Any) -> Any:
        return addresses if host == "kafka.example" else getaddrinfo(host, *arguments, **options)

    return resolve
