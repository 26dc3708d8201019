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
class Bench:
    """An upstream that answers every byte with itself, and a proxy before it."""

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
    """The upstream's end of a connection."""

    def __init__(self, opened: list[asyncio.Transport]) -> None:
        self.opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.opened.append(transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def on_a_bench(test: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        opened: list[asyncio.Transport] = []
        server = await asyncio.get_running_loop().create_server(lambda: Echo(opened), HOST, 0)
        port = free_port()
        chances: list[float] = []
        upstream = server.sockets[0].getsockname()[1]
        proxy = Proxy("orders-1", HOST, port, upstream, lambda: chances.pop(0) if chances else 0.0)
        await proxy.open()
        try:
            await test(Bench(proxy, port, chances))
        finally:
            await proxy.close()
            server.close()
            for transport in opened:
                transport.abort()
            await asyncio.sleep(0)

    asyncio.run(run())


async def exchange(bench: Bench, data: bytes) -> bytes:
    async with bench.connection() as (reader, writer):
        writer.write(data)
        return await asyncio.wait_for(reader.readexactly(len(data)), WAIT_S)


def test_bytes_pass_both_ways_unchanged() -> None:
    async def test(bench: Bench) -> None:
        data = bytes(range(256)) * 40_000
        assert await exchange(bench, data) == data

    on_a_bench(test)


def test_a_delay_is_paid_each_way() -> None:
    async def test(bench: Bench) -> None:
        bench.proxy.delay(0.1)
        started = time.monotonic()
        await exchange(bench, b"x")
        assert 0.2 <= time.monotonic() - started < 1

    on_a_bench(test)


def test_a_share_of_what_clients_send_waits_and_what_comes_after_it_behind_it() -> None:
    async def test(bench: Bench) -> None:
        bench.proxy.delay(1, share=0.05)
        async with bench.connection() as (reader, writer):
            for chance, waits in ((0.06, False), (0.04, True)):
                bench.chances[:] = [chance]
                started = time.monotonic()
                writer.write(b"x")
                assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"x"
                # Its answer does not wait as well, whatever chance says.
                assert (1 <= time.monotonic() - started < 2) == waits
            bench.chances[:] = [0.04, 0.06]
            writer.write(b"first")
            await asyncio.sleep(0.05)
            writer.write(b"second")
            assert await asyncio.wait_for(reader.readexactly(11), WAIT_S) == b"firstsecond"

    on_a_bench(test)


def test_a_delay_that_is_shortened_keeps_the_order() -> None:
    async def test(bench: Bench) -> None:
        async with bench.connection() as (reader, writer):
            bench.proxy.delay(0.3)
            writer.write(b"first")
            await asyncio.sleep(0.05)
            bench.proxy.delay(0.001)
            writer.write(b"second")
            assert await asyncio.wait_for(reader.readexactly(11), WAIT_S) == b"firstsecond"

    on_a_bench(test)


def test_a_delay_does_not_limit_how_much_passes() -> None:
    async def test(bench: Bench) -> None:
        bench.proxy.delay(0.02)
        data = b"y" * 4_000_000
        assert await exchange(bench, data) == data

    on_a_bench(test)


def test_a_black_hole_accepts_and_answers_nothing_then_delivers() -> None:
    async def test(bench: Bench) -> None:
        bench.proxy.blackhole()
        async with bench.connection() as (reader, writer):
            writer.write(b"held")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.2)
            bench.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(4), WAIT_S) == b"held"

    on_a_bench(test)


def test_a_black_hole_swallows_connections_that_were_there_before() -> None:
    async def test(bench: Bench) -> None:
        async with bench.connection() as (reader, writer):
            writer.write(b"a")
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"a"
            bench.proxy.blackhole()
            writer.write(b"b")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.2)
            bench.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"b"

    on_a_bench(test)


def test_a_black_hole_holds_delayed_bytes_too() -> None:
    async def test(bench: Bench) -> None:
        async with bench.connection() as (reader, writer):
            bench.proxy.delay(0.1)
            writer.write(b"a")
            await asyncio.sleep(0.05)
            bench.proxy.blackhole()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.4)
            bench.proxy.heal()
            assert await asyncio.wait_for(reader.readexactly(1), WAIT_S) == b"a"

    on_a_bench(test)


def test_a_closed_proxy_refuses_and_drops_and_can_open_again() -> None:
    async def test(bench: Bench) -> None:
        async with bench.connection() as (reader, writer):
            writer.write(b"a")
            await asyncio.wait_for(reader.readexactly(1), WAIT_S)
            await bench.proxy.close()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, bench.port)
        await bench.proxy.open()
        assert await exchange(bench, b"again") == b"again"

    on_a_bench(test)


def test_a_client_of_a_dead_upstream_is_dropped() -> None:
    async def run() -> None:
        port, nobody = free_port(), free_port()
        proxy = Proxy("orders-1", HOST, port, nobody)
        await proxy.open()
        async with Bench(proxy, port, []).connection() as (reader, _):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), WAIT_S)
        await proxy.close()

    asyncio.run(run())


def test_the_end_of_a_clients_stream_reaches_the_upstream() -> None:
    async def test(bench: Bench) -> None:
        async with bench.connection() as (reader, writer):
            writer.write(b"last words")
            await asyncio.wait_for(reader.readexactly(10), WAIT_S)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), WAIT_S) == b""

    on_a_bench(test)
