import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.cluster_inspection import InspectionTarget, inspect_clusters
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.endpoint_probe import (
    EndpointProbeResult,
    EndpointResponse,
    parse_bootstrap,
    probe_endpoints,
)

RESPONSE_OF_4_3 = struct.pack(">ihi", 1, 0, 2) + struct.pack(">hhh", 18, 0, 4) + struct.pack(">hhh", 35, 1, 5)


@contextmanager
def listener(respond: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the HOST:PORT of a listener that accepts one connection, reads a request and responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                respond(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def probe_endpoint(address: str) -> EndpointProbeResult:
    return probe_endpoints([address], None)[address]


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("bootstrap", "addresses"),
    [
        ("a:1", ("a:1",)),
        ("a:1,b:2 , c", ("a:1", "b:2", "c:9092")),
        ("[::1]:7,[fe80::2]", ("[::1]:7", "[fe80::2]:9092")),
    ],
)
def test_an_address_without_a_port_has_the_default_port_of_kafka(
    bootstrap: str, addresses: tuple[str, ...]
) -> None:
    assert parse_bootstrap(bootstrap) == addresses


def test_the_kafka_version_is_inferred_from_the_supported_apis() -> None:
    frame = struct.pack(">i", len(RESPONSE_OF_4_3)) + RESPONSE_OF_4_3
    with listener(lambda connection: connection.sendall(frame)) as address:
        assert probe_endpoint(address) == EndpointResponse((4, 3))


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        struct.pack(">i", len(RESPONSE_OF_4_3)) + b"\0" * len(RESPONSE_OF_4_3),
        struct.pack(">i", 100) + RESPONSE_OF_4_3[:9],
    ],
    ids=["disconnects", "HTTP", "another correlation ID", "truncated"],
)
def test_a_listener_that_does_not_speak_kafka_is_distinguished_from_one_that_does_not_respond(
    response: bytes,
) -> None:
    with listener(lambda connection: connection.sendall(response)) as address:
        assert probe_endpoint(address) is ConnectionFailure.NOT_KAFKA


@pytest.mark.parametrize("response", [b"HTTP/1.1 400 Bad Request\r\n", struct.pack(">i", -1)])
def test_an_impossible_size_is_not_kafka_even_if_the_connection_stays_open(response: bytes) -> None:
    def respond(connection: socket.socket) -> None:
        connection.sendall(response)
        connection.recv(1)

    with listener(respond) as address:
        assert probe_endpoint(address) is ConnectionFailure.NOT_KAFKA


def test_a_tls_alert_in_response_to_plaintext_means_that_tls_is_required() -> None:
    with listener(lambda connection: connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")) as address:
        assert probe_endpoint(address) is ConnectionFailure.TLS_REQUIRED


def test_a_listener_that_accepts_but_never_responds_is_reported_as_no_response() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert probe_endpoint(address) is ConnectionFailure.NO_RESPONSE


def test_an_inspection_waits_for_a_busy_broker_longer_than_a_probe_that_precedes_a_request() -> None:
    frame = struct.pack(">i", len(RESPONSE_OF_4_3)) + RESPONSE_OF_4_3

    def respond_late(connection: socket.socket) -> None:
        # As late as a probe that precedes a request gives up.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            probe_endpoint(f"127.0.0.1:{silent.getsockname()[1]}")
        connection.sendall(frame)

    with listener(respond_late) as address:
        target = InspectionTarget(ClusterAccess(address), lambda _: ())
        (inspection,) = inspect_clusters([target], lambda _: None)
    assert inspection.bootstrap_endpoints == {address: EndpointResponse((4, 3))}


def test_a_port_without_a_listener_refuses_the_connection(free_port: int) -> None:
    assert probe_endpoint(f"127.0.0.1:{free_port}") is ConnectionFailure.CONNECTION_REFUSED


@pytest.mark.parametrize("host", ["kafka..example", "k" * 64])
def test_a_malformed_host_name_is_reported_as_not_found(host: str) -> None:
    assert probe_endpoint(f"{host}:9092") is ConnectionFailure.HOST_NOT_FOUND


def test_an_unknown_host_name_is_distinguished_from_a_closed_port(free_port: int) -> None:
    results = probe_endpoints(["no-such-host.invalid:9092", f"127.0.0.1:{free_port}"], None)
    assert results == {
        "no-such-host.invalid:9092": ConnectionFailure.HOST_NOT_FOUND,
        f"127.0.0.1:{free_port}": ConnectionFailure.CONNECTION_REFUSED,
    }
