"""A TCP proxy on one broker's client listener that can delay bytes or swallow them.

Each connection is two streams, client to broker and back. A stream forwards what it reads at once,
or ``delay`` later in the order in which it came, all of it or some of what clients send. A black
hole stops reading and holds what waits: to a client that is a network which drops every packet, and
healing it delivers what was held, as retransmission would.
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
    """One listener before one upstream address."""

    def __init__(
        self, name: str, host: str, port: int, upstream_port: int, chance: Callable[[], float] = random
    ) -> None:
        """``chance``: between 0 and 1, evenly."""
        self._name = name
        self._host = host
        self._port = port
        self._upstream_port = upstream_port
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._streams: set[_Stream] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._delay_s = 0.0
        self._share = 1.0

    @property
    def delay_s(self) -> float:
        """How long bytes wait that do, one way."""
        return self._delay_s

    @property
    def share(self) -> float:
        """Of all that wait; where that is not 1, of what clients send."""
        return self._share

    def delay_of_next_s(self, *, from_client: bool) -> float:
        """How long the next piece waits."""
        if self._share == 1:
            return self._delay_s
        return self._delay_s if from_client and self._chance() < self._share else 0.0

    @property
    def blackholed(self) -> bool:
        """Whether nothing passes."""
        return not self._passing.is_set()

    async def open(self) -> None:
        """Accept connections."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._accept, self._host, self._port)
            _log.info("%s: proxy listens on %s:%d", self._name, self._host, self._port)

    async def close(self) -> None:
        """Refuse connections and drop those that are there, as the host of a dead process does."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in tuple(self._connecting):
            task.cancel()
        for stream in tuple(self._streams):
            stream.abort()
        # Aborted transports report their end in the next turn of the loop.
        await asyncio.sleep(0)
        _log.info("%s: proxy refuses connections", self._name)

    def delay(self, seconds: float, share: float = 1) -> None:
        """Let every byte wait this long in each direction, or that share of what clients send; 0 ends it."""
        self._delay_s, self._share = seconds, share
        _log.info("%s: proxy delays %g of all by %g ms", self._name, share, seconds * 1000)

    def blackhole(self) -> None:
        """Hold every connection, old and new, and forward nothing."""
        self._passing.clear()
        for stream in self._streams:
            stream.hold()
        _log.info("%s: proxy is a black hole", self._name)

    def heal(self) -> None:
        """Pass bytes on at once, the held ones first."""
        self._delay_s, self._share = 0.0, 1.0
        self._passing.set()
        for stream in tuple(self._streams):
            stream.release()
        _log.info("%s: proxy passes", self._name)

    def _accept(self) -> "_Stream":
        client = self._new_stream(from_client=True)
        task = asyncio.get_running_loop().create_task(self._connect(client))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return client

    def _new_stream(self, *, from_client: bool) -> "_Stream":
        return _Stream(self, self._streams, from_client=from_client)

    async def _connect(self, client: "_Stream") -> None:
        await self._passing.wait()
        broker = self._new_stream(from_client=False)
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: broker, self._host, self._upstream_port)
        except OSError:
            client.abort()
        else:
            client.join(broker)
            broker.join(client)


class _Stream(asyncio.Protocol):
    """One end of a connection; what it reads goes to its ``peer``.

    Reading is paused while there is no peer, in a black hole, and while the peer's buffer is full.
    """

    def __init__(self, proxy: Proxy, streams: "set[_Stream]", *, from_client: bool) -> None:
        self._proxy = proxy
        self._streams = streams
        self._from_client = from_client
        self._transport: asyncio.Transport | None = None
        self._peer: _Stream | None = None
        # What waits for its time: (due, bytes), or (due, None) for the end of the stream.
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._peer_is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.pause_reading()
        self._streams.add(self)

    def join(self, peer: "_Stream") -> None:
        self._peer = peer
        self._read_or_not()

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
        self._read_or_not()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        self._flush()
        self._read_or_not()

    def abort(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        if self._transport is not None:
            self._transport.abort()

    def _set_peer_full(self, full: bool) -> None:
        self._peer_is_full = full
        self._read_or_not()

    def _read_or_not(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._peer is None or self._peer_is_full or self._proxy.blackholed:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _forward(self, data: bytes | None) -> None:
        delay_s = self._proxy.delay_of_next_s(from_client=self._from_client)
        if not (delay_s or self._waiting or self._proxy.blackholed):
            self._pass_on(data)
            return
        due = asyncio.get_running_loop().time() + delay_s
        # A delay that was just shortened must not let bytes overtake each other.
        self._waiting.append((max(due, self._waiting[-1][0]) if self._waiting else due, data))
        self._wait()

    def _wait(self) -> None:
        if self._timer is None and self._waiting and not self._proxy.blackholed:
            self._timer = asyncio.get_running_loop().call_at(self._waiting[0][0], self._pass_on_what_is_due)

    def _pass_on_what_is_due(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._waiting and self._waiting[0][0] <= now:
            self._pass_on(self._waiting.popleft()[1])
        self._wait()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._pass_on(self._waiting.popleft()[1])

    def _pass_on(self, data: bytes | None) -> None:
        if self._peer is None or self._peer._transport is None:
            return
        with contextlib.suppress(OSError):
            if data is None:
                self._peer._transport.close()
            else:
                self._peer._transport.write(data)
