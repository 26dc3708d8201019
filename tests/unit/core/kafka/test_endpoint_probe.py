import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleetgauge_core.kafka.endpoint_probe import (
    Reply,
    Silence,
    addresses,
    knock,
    knock_at,
)

ANSWER_OF_4_3 = struct.pack(">ihi", 1, 0, 2) + struct.pack(">hhh", 18, 0, 4) + struct.pack(">hhh", 35, 1, 5)


@contextmanager
def listener(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """One connection is answered so."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("bootstrap", "found"),
    [
        ("a:1", ("a:1",)),
        ("a:1,b:2 , c", ("a:1", "b:2", "c:9092")),
        ("[::1]:7,[fe80::2]", ("[::1]:7", "[fe80::2]:9092")),
    ],
)
def test_an_address_without_a_port_has_kafkas(bootstrap: str, found: tuple[str, ...]) -> None:
    assert addresses(bootstrap) == found


def test_an_answer_tells_the_version_by_its_protocols() -> None:
    framed = struct.pack(">i", len(ANSWER_OF_4_3)) + ANSWER_OF_4_3
    with listener(lambda connection: connection.sendall(framed)) as address:
        assert knock(address) == Reply((4, 3))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        struct.pack(">i", len(ANSWER_OF_4_3)) + b"\0" * len(ANSWER_OF_4_3),
        struct.pack(">i", 100) + ANSWER_OF_4_3[:9],
    ],
    ids=["hangs up", "HTTP", "another question's answer", "broken off"],
)
def test_what_does_not_speak_kafka_is_told_from_silence(said: bytes) -> None:
    with listener(lambda connection: connection.sendall(said)) as address:
        assert knock(address) is Silence.NOT_KAFKA


def test_an_alert_shows_that_tls_is_wanted() -> None:
    with listener(lambda connection: connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")) as address:
        assert knock(address) is Silence.WANTS_TLS


def test_a_connection_without_an_answer_is_mute() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert knock(f"127.0.0.1:{server.getsockname()[1]}") is Silence.MUTE


def test_a_port_where_nobody_listens_refuses(free_port: int) -> None:
    assert knock(f"127.0.0.1:{free_port}") is Silence.REFUSED


@pytest.mark.parametrize("host", ["kafka..example", "k" * 64])
def test_a_name_that_cannot_exist_is_no_name(host: str) -> None:
    assert knock(f"{host}:9092") is Silence.NO_NAME


def test_a_name_that_does_not_exist_is_told_from_a_host_that_is_down(free_port: int) -> None:
    found = knock_at(["no-such-host.invalid:9092", f"127.0.0.1:{free_port}"], None)
    assert found == {
        "no-such-host.invalid:9092": Silence.NO_NAME,
        f"127.0.0.1:{free_port}": Silence.REFUSED,
    }
