"""A TCP proxy in front of one broker's client listener that can delay or withhold bytes.

Each connection has two streams: client to broker, and broker to client. A stream forwards the bytes it reads
at once, or after a fixed delay and in order. The delay applies to all bytes, or to a random share of the
pieces that clients send. A black hole stops reading and keeps buffered bytes: a client sees a network that
drops every packet. Healing delivers the buffered bytes, as TCP retransmission would.
"""

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from random import random

_log = logging.getLogger(__name__)


class Proxy:
    """A TCP listener that forwards each connection to one upstream port."""

    def __init__(
        self, name: str, host: str, port: int, upstream_port: int, chance: Callable[[], float] = random
    ) -> None:
        """``chance`` returns uniform random numbers in [0, 1); tests replace it."""
        self._name = name
        self._host = host
        self._port = port
        self._upstream_port = upstream_port
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._streams: set[_Stream] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._forwarding = asyncio.Event()
        self._forwarding.set()
        self._delay_s = 0.0
        self._share = 1.0

    @property
    def delay_s(self) -> float:
        """The delay of a delayed piece of data, in seconds, in each direction."""
        return self._delay_s

    @property
    def share(self) -> float:
        """The share of data that is delayed; below 1 it applies only to data that clients send."""
        return self._share

    def next_delay_s(self, *, from_client: bool) -> float:
        """Return the delay of the next piece of data, in seconds; random where the share is below 1."""
        if self._share == 1:
            return self._delay_s
        return self._delay_s if from_client and self._chance() < self._share else 0.0

    @property
    def blackholed(self) -> bool:
        """Whether the proxy currently forwards nothing."""
        return not self._forwarding.is_set()

    async def open(self) -> None:
        """Start to accept connections; does nothing if the proxy is open."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._accept, self._host, self._port)
            _log.info("%s: proxy listens on %s:%d", self._name, self._host, self._port)

    async def close(self) -> None:
        """Refuse new connections and reset the existing ones, as a host does when its process has died."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in tuple(self._connecting):
            task.cancel()
        for stream in tuple(self._streams):
            stream.abort()
        # asyncio calls connection_lost() of aborted transports in the next iteration of the event loop.
        await asyncio.sleep(0)
        _log.info("%s: proxy refuses connections", self._name)

    def delay(self, seconds: float, share: float = 1) -> None:
        """Delay all data in both directions, or a share below 1 of client data; 0 seconds end the delay."""
        self._delay_s, self._share = seconds, share
        _log.info("%s: proxy delays a share of %g of the data by %g ms", self._name, share, seconds * 1000)

    def blackhole(self) -> None:
        """Forward nothing on existing and new connections until the proxy is healed."""
        self._forwarding.clear()
        for stream in self._streams:
            stream.hold()
        _log.info("%s: proxy forwards nothing (black hole)", self._name)

    def heal(self) -> None:
        """End the delay and the black hole, and deliver the buffered bytes first."""
        self._delay_s, self._share = 0.0, 1.0
        self._forwarding.set()
        for stream in tuple(self._streams):
            stream.release()
        _log.info("%s: proxy forwards without delay", self._name)

    def _accept(self) -> "_Stream":
        client = self._new_stream(from_client=True)
        task = asyncio.get_running_loop().create_task(self._connect(client))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return client

    def _new_stream(self, *, from_client: bool) -> "_Stream":
        return _Stream(self, self._streams, from_client=from_client)

    async def _connect(self, client: "_Stream") -> None:
        await self._forwarding.wait()
        broker = self._new_stream(from_client=False)
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: broker, self._host, self._upstream_port)
        except OSError:
            client.abort()
        else:
            client.set_peer(broker)
            broker.set_peer(client)


class _Stream(asyncio.Protocol):
    """One end of a connection; it writes the bytes it reads to its ``peer``.

    Reading is paused while there is no peer, in a black hole, and while the peer's write buffer is full.
    """

    def __init__(self, proxy: Proxy, streams: "set[_Stream]", *, from_client: bool) -> None:
        self._proxy = proxy
        self._streams = streams
        self._from_client = from_client
        self._transport: asyncio.Transport | None = None
        self._peer: _Stream | None = None
        # Delayed data in order: (due time, bytes), or (due time, None) for the end of the stream.
        self._delayed: deque[tuple[float, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._peer_is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.pause_reading()
        self._streams.add(self)

    def set_peer(self, peer: "_Stream") -> None:
        self._peer = peer
        self._update_reading()

    def data_received(self, data: bytes) -> None:
        self._forward(data)

    def eof_received(self) -> bool:
        self._forward(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._streams.discard(self)
        self._transport = None
        self._forward(None)

    def pause_writing(self) -> None:
        if self._peer is not None:
            self._peer._set_peer_full(True)

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer._set_peer_full(False)

    def hold(self) -> None:
        self._update_reading()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        self._flush()
        self._update_reading()

    def abort(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._delayed.clear()
        if self._transport is not None:
            self._transport.abort()

    def _set_peer_full(self, full: bool) -> None:
        self._peer_is_full = full
        self._update_reading()

    def _update_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._peer is None or self._peer_is_full or self._proxy.blackholed:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _forward(self, data: bytes | None) -> None:
        delay_s = self._proxy.next_delay_s(from_client=self._from_client)
        if not (delay_s or self._delayed or self._proxy.blackholed):
            self._write_to_peer(data)
            return
        due = asyncio.get_running_loop().time() + delay_s
        # After the delay was shortened, later bytes must not overtake earlier ones.
        self._delayed.append((max(due, self._delayed[-1][0]) if self._delayed else due, data))
        self._schedule_write()

    def _schedule_write(self) -> None:
        if self._timer is None and self._delayed and not self._proxy.blackholed:
            self._timer = asyncio.get_running_loop().call_at(self._delayed[0][0], self._write_due)

    def _write_due(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._delayed and self._delayed[0][0] <= now:
            self._write_to_peer(self._delayed.popleft()[1])
        self._schedule_write()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._delayed:
            self._write_to_peer(self._delayed.popleft()[1])

    def _write_to_peer(self, data: bytes | None) -> None:
        if self._peer is None or self._peer._transport is None:
            return
        with contextlib.suppress(OSError):
            if data is None:
                self._peer._transport.close()
            else:
                self._peer._transport.write(data)
