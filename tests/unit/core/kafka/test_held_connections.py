"""Connections that are held to brokers: who ended one is told apart."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from fleetgauge_core.fleet import NO_SECURITY, ClusterAccess
from fleetgauge_core.kafka import held_connections
from fleetgauge_core.kafka.held_connections import BrokerAddress, HeldConnections
from fleetgauge_core.metadata import ConnectionEvent, ConnectionEventKind
from tests.waiting import wait_until

DEADLINE_S = 20
OPENED, ENDED = ConnectionEventKind.OPENED, ConnectionEventKind.ENDED
#: Correlation ID, no error, and one API: ApiVersions 0 to 4.
_ANSWER = struct.pack(">ihi", 1, 0, 1) + struct.pack(">hhh", 18, 0, 4)


class Server:
    """A listener that answers ApiVersions, and can end its connections."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = BrokerAddress("127.0.0.1", self.socket.getsockname()[1])
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
                connection.recv(4096)
                connection.sendall(struct.pack(">i", len(_ANSWER)) + _ANSWER)
            except OSError:
                return
            self.connections.append(connection)

    def end_connections(self, *, by_reset: bool) -> None:
        for connection in self.connections:
            if by_reset:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
        self.connections.clear()


@contextmanager
def holding(
    server: Server, on_event: Callable[[], None] = lambda: None
) -> Iterator[tuple[HeldConnections, list[ConnectionEvent]]]:
    access = ClusterAccess("127.0.0.1:1", NO_SECURITY)
    connections = HeldConnections(access, lambda: datetime.now(UTC), on_event)
    connections.start()
    try:
        connections.hold({1: server.address})
        yield connections, []
    finally:
        connections.stop()
        server.socket.close()
        server.end_connections(by_reset=False)


def wait_for(
    connections: HeldConnections, events: list[ConnectionEvent], *kinds: ConnectionEventKind
) -> None:
    def has_all() -> bool:
        events.extend(connections.take_events())
        return [event.kind for event in events] == list(kinds)

    wait_until(has_all, DEADLINE_S, f"events {kinds}")


@pytest.mark.parametrize("by_reset", [False, True])
def test_an_end_by_the_other_side_is_told_at_once_and_the_connection_is_opened_again(by_reset: bool) -> None:
    server, woken = Server(), threading.Event()
    with holding(server, woken.set) as (connections, events):
        wait_for(connections, events, OPENED)
        assert events[0].version is not None
        server.end_connections(by_reset=by_reset)
        assert woken.wait(DEADLINE_S)
        wait_for(connections, events, OPENED, ENDED, OPENED)


def test_a_connection_is_replaced_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_connections, "_REPLACE_AFTER_S", 0.1)
    server = Server()
    with holding(server) as (connections, events):
        wait_until(lambda: len(server.connections) > 5, DEADLINE_S, "replacements")
        wait_for(connections, events, OPENED)


def test_a_broker_that_is_not_there_is_tried_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_connections, "_RETRY_S", 0.05)
    server = Server()
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with holding(server) as (connections, events):
        wait_for(connections, events, OPENED)
        connections.hold({2: BrokerAddress("127.0.0.1", port)})
        wait_until(lambda: not connections.take_events(), DEADLINE_S, "no event")
        server.socket.close()
        listener = socket.create_server(("127.0.0.1", port))
        answering = Server.__new__(Server)
        answering.socket, answering.connections = listener, []
        threading.Thread(target=answering._accept, daemon=True).start()
        events.clear()
        wait_for(connections, events, OPENED)
        assert events[0].broker_id == 2
        listener.close()
        answering.end_connections(by_reset=False)


def test_a_broker_that_is_no_longer_held_is_let_go() -> None:
    server = Server()
    with holding(server) as (connections, events):
        wait_for(connections, events, OPENED)
        connections.hold({})
        wait_until(lambda: has_ended(server.connections[0]), DEADLINE_S, "the end of the connection")
        assert not connections.take_events()


def has_ended(connection: socket.socket) -> bool:
    connection.settimeout(0.1)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_stopping_ends_the_thread() -> None:
    server = Server()
    with holding(server) as (connections, events):
        wait_for(connections, events, OPENED)
    assert not connections._thread.is_alive()
    assert asyncio.all_tasks(connections._loop) == set()
