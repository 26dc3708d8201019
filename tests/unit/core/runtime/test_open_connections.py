import asyncio
import resource
from typing import Any

import pytest

from fleetgauge_core.runtime.open_connections import OpenConnections


class FakeTransport(asyncio.Transport):
    """A transport that records that it was aborted."""

    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def open_connections(limit: int, count: int, **may_close: Any) -> tuple[OpenConnections, list[FakeTransport]]:
    connections, transports = OpenConnections(limit), [FakeTransport() for _ in range(count)]
    for transport in transports:
        connections.add(transport, **may_close)
    return connections, transports


def test_one_too_many_closes_the_oldest() -> None:
    _, transports = open_connections(3, 5)
    assert [transport.is_aborted for transport in transports] == [True, True, False, False, False]


def test_a_closed_connection_no_longer_counts() -> None:
    connections, transports = open_connections(3, 3)
    connections.remove(transports[1])
    connections.remove(transports[1])
    connections.add(FakeTransport())
    assert not any(transport.is_aborted for transport in transports)


def test_a_connection_with_a_request_is_not_closed_for_another() -> None:
    connections = OpenConnections(2)
    busy, silent, new = (FakeTransport() for _ in range(3))
    connections.add(busy, lambda: False)
    connections.add(silent)
    connections.add(new)
    assert [transport.is_aborted for transport in (busy, silent, new)] == [False, True, False]


def test_when_all_have_requests_the_new_one_is_closed() -> None:
    _, transports = open_connections(2, 3, may_close=lambda: False)
    assert [transport.is_aborted for transport in transports] == [False, False, True]


def test_closing_all_spares_those_with_requests() -> None:
    connections, (busy, *_) = open_connections(9, 1, may_close=lambda: False)
    silent = FakeTransport()
    connections.add(silent)
    connections.close_all()
    assert (busy.is_aborted, silent.is_aborted) == (False, True)


@pytest.mark.parametrize(("files", "limit"), [(256, 128), (1_024, 512), (1_000_000, 4_096), (-1, 4_096)])
def test_half_of_the_processes_files_are_left(
    monkeypatch: pytest.MonkeyPatch, files: int, limit: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    connections = OpenConnections()
    transports = [FakeTransport() for _ in range(limit + 1)]
    for transport in transports:
        connections.add(transport)
    assert sum(transport.is_aborted for transport in transports) == 1
