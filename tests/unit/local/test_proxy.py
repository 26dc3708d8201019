import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from fleetgauge_local.proxy import Proxy

HOST = "127.0.0.1"
WAIT_S = 5


@dataclass
class ProxyHarness:
    """An upstream that echoes every byte, and a proxy in front of it."""

    proxy: Proxy
    port: int
    chances: list[float]

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


def free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


class Echo(asyncio.Protocol):
    """The upstream's end of a connection; it echoes what it receives."""

    def __init__(self, opened: list[asyncio.Transport]) -> None:
        self.opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.opened.append(transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def run_with_harness(test: Callable[[ProxyHarness], Awaitable[None]]) -> None:
    async def run() -> None:
        opened: list[asyncio.Transport] = []
        server = await asyncio.get_running_loop().create_server(lambda: Echo(opened), HOST, 0)
        port = free_port()
        chances: list[float] = []
        upstream = server.sockets[0].getsockname()[1]
        proxy = Proxy("orders-1", HOST, port, upstream, lambda: chances.pop(0) if chances else 0.0)
        await proxy.open()
        try:
            await test(ProxyHarness(proxy, port, chances))
        finally:
            await proxy.close()
            server.close()
            for transport in opened:
                transport.abort()
            await asyncio.sleep(0)

    asyncio.run(run())


async def exchange(harness: ProxyHarness, data: bytes) -> bytes:
    async with harness.connection() as (reader, writer):
        writer.write(data)
        return await asyncio.wait_for(reader.readexactly(len(data)), WAIT_S)


def test_bytes_pass_both_ways_unchanged() -> None:
    async def test(harness: ProxyHarness) -> None:
        data = bytes(range(256)) * 40_000
        assert await exchange(harness, data) == data

    run_with_harness(test)


def test_a_delay_applies_in_each_direction() -> None:
    async def test(harness: ProxyHarness) -> None:
        harness.proxy.delay(0.1)
        started = time.monotonic()
        await exchange(harness, b"x")
        assert 0.2 <= time.monotonic() - started < 1

    run_with_harness(test)


def test_a_share_of_client_data_is_delayed_and_order_is_kept() -> None:
    async def test(harness: ProxyHarness) -> None:
        harness.proxy.delay(1, share=0.05)
        async with harness.connection() as (reader, writer):
            for chance, delayed in ((0.06, False), (0.04, True)):
                harness.chances[:] = [chance]
                started = time.monotonic()
                writer.write(b"x")
                assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"x"
                # The response is not delayed, whatever the random number.
                assert (1 <= time.monotonic() - started < 2) == delayed
            harness.chances[:] = [0.04, 0.06]
            writer.write(b"first")
            await asyncio.sleep(0.05)
            writer.write(b"second")
            assert await asyncio.wait_for(reader.readexactly(11), WAIT_S) == b"firstsecond"

    run_with_harness(test)


def test_a_shortened_delay_keeps_the_order() -> None:
    async def test(harness: ProxyHarness) -> None:
        async with harness.connection() as (reader, writer):
            harness.proxy.delay(0.3)
            writer.write(b"first")
            await asyncio.sleep(0.05)
            harness.proxy.delay(0.001)
            writer.write(b"second")
            assert await asyncio.wait_for(reader.readexactly(11), WAIT_S) == b"firstsecond"

    run_with_harness(test)


def test_a_delay_does_not_limit_throughput() -> None:
    async def test(harness: ProxyHarness) -> None:
        harness.proxy.delay(0.02)
        data = b"y" * 4_000_000
        assert await exchange(harness, data) == data

    run_with_harness(test)


def test_a_black_hole_accepts_connections_and_delivers_held_data_when_healed() -> None:
    async def test(harness: ProxyHarness) -> None:
        harness.proxy.blackhole()
        async with harness.connection() as (reader, writer):
            writer.write(b"held")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.2)
            harness.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(4), WAIT_S) == b"held"

    run_with_harness(test)


def test_a_black_hole_affects_existing_connections() -> None:
    async def test(harness: ProxyHarness) -> None:
        async with harness.connection() as (reader, writer):
            writer.write(b"a")
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"a"
            harness.proxy.blackhole()
            writer.write(b"b")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.2)
            harness.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"b"

    run_with_harness(test)


def test_a_black_hole_holds_delayed_data_too() -> None:
    async def test(harness: ProxyHarness) -> None:
        async with harness.connection() as (reader, writer):
            harness.proxy.delay(0.1)
            writer.write(b"a")
            await asyncio.sleep(0.05)
            harness.proxy.blackhole()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.4)
            harness.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"a"

    run_with_harness(test)


def test_a_closed_proxy_resets_and_refuses_connections_and_can_be_reopened() -> None:
    async def test(harness: ProxyHarness) -> None:
        async with harness.connection() as (reader, writer):
            writer.write(b"a")
            await asyncio.wait_for(reader.readexactly(1), WAIT_S)
            await harness.proxy.close()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, harness.port)
        await harness.proxy.open()
        assert await exchange(harness, b"again") == b"again"

    run_with_harness(test)


def test_a_client_is_disconnected_if_the_upstream_is_unreachable() -> None:
    async def run() -> None:
        port, unused_port = free_port(), free_port()
        proxy = Proxy("orders-1", HOST, port, unused_port)
        await proxy.open()
        async with ProxyHarness(proxy, port, []).connection() as (reader, _):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        await proxy.close()

    asyncio.run(run())


def test_the_end_of_a_clients_stream_reaches_the_upstream() -> None:
    async def test(harness: ProxyHarness) -> None:
        async with harness.connection() as (reader, writer):
            writer.write(b"last words")
            await asyncio.wait_for(reader.readexactly(10), WAIT_S)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), WAIT_S) == b""

    run_with_harness(test)
