"""A door before a broker that holds probes back and keeps account of them: what an agent should tell.

A probe's truth begins when its Produce request has come in whole and ends when the acknowledgement, or the
Fetch response that carries it, has gone out. Everything else passes as it comes.
"""

import asyncio
import struct
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from uuid import UUID

from fleetgauge_core.contract import Leg
from fleetgauge_local.layout import HOST
from fleetgauge_probes.agent.payload import PAYLOAD_BYTES, ProbeKey, decode_payload

_SIZE = struct.Struct(">i")
#: Behind the size: API key, version, correlation id (a response has the last alone).
_REQUEST = struct.Struct(">hhi")
_PRODUCE, _FETCH = 0, 1
#: In a record without a key: the key's length (-1), that of a value of PAYLOAD_BYTES, both as zigzag varints.
_BEFORE_VALUE = b"\x01\x80\x02"
_AGENT_BYTES = 16
_READ_BYTES = 2**22

#: Which agent's, and which one.
Probe = tuple[UUID, ProbeKey]
#: Seconds that a leg's n-th probe is held back.
Delay = Callable[[int], float]


@dataclass
class Truth:
    """In microseconds; and what passed the door altogether."""

    acked_us: dict[Probe, int] = field(default_factory=dict)
    received_us: dict[Probe, int] = field(default_factory=dict)
    requests: Counter[int] = field(default_factory=Counter)
    passed_bytes: int = 0
    connections: int = 0

    def of(self, leg: Leg) -> list[int]:
        """What the agent should have measured on that leg, ascending."""
        took_us = self.received_us if leg is Leg.CLIENT else self.acked_us
        return sorted(one for (_, name), one in took_us.copy().items() if name.leg is leg)


@contextmanager
def doors(behind: Mapping[int, tuple[int, Delay]]) -> Iterator[Mapping[int, Truth]]:
    """Open while the block runs, by port: each leads to another port, with a delay."""
    truths = {port: Truth() for port in behind}
    ready, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        servers = [
            await asyncio.start_server(_Door(upstream, delay, truths[port]).pass_on, HOST, port)
            for port, (upstream, delay) in behind.items()
        ]
        ready.set()
        await ended.wait()
        for server in servers:
            server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        ready.wait()
        yield truths
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


class _Door:
    def __init__(self, upstream: int, delay: Delay, truth: Truth) -> None:
        self._upstream = upstream
        self._delay = delay
        self._truth = truth
        self._came_ns: dict[Probe, int] = {}

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, for as long as both ends want it."""
        from_broker, to_broker = await asyncio.open_connection(HOST, self._upstream, limit=_READ_BYTES)
        self._truth.connections += 1
        asked: dict[int, tuple[int, bytes]] = {}
        ways = [
            asyncio.create_task(self._requests(reader, to_broker, asked)),
            asyncio.create_task(self._responses(from_broker, writer, asked)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            self._truth.connections -= 1
            for way in ways:
                way.cancel()
            for end in (to_broker, writer):
                end.close()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, tuple[int, bytes]]
    ) -> None:
        async for frame in self._frames(reader):
            key, _, correlation = _REQUEST.unpack_from(frame, _SIZE.size)
            self._truth.requests[key] += 1
            asked[correlation] = key, frame if key == _PRODUCE else b""
            if key == _PRODUCE:
                came_ns = time.monotonic_ns()
                probes = _probes_in(frame)
                self._came_ns |= dict.fromkeys(probes, came_ns)
                await asyncio.sleep(max((self._delay(name.sequence) for _, name in probes), default=0))
            writer.write(frame)

    async def _responses(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, tuple[int, bytes]]
    ) -> None:
        async for frame in self._frames(reader):
            (correlation,) = _SIZE.unpack_from(frame, _SIZE.size)
            key, request = asked.pop(correlation)
            writer.write(frame)
            went_ns = time.monotonic_ns()
            if key == _PRODUCE:
                self._note(self._truth.acked_us, _probes_in(request), went_ns)
            elif key == _FETCH:
                self._note(self._truth.received_us, _probes_in(frame), went_ns)

    def _note(self, took_us: dict[Probe, int], probes: list[Probe], went_ns: int) -> None:
        for probe in probes:
            # Other agents' probes pass here too, to be consumed.
            if probe in self._came_ns:
                took_us[probe] = (went_ns - self._came_ns[probe]) // 1000

    async def _frames(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = await reader.readexactly(_SIZE.size)
                frame = size + await reader.readexactly(*_SIZE.unpack(size))
                self._truth.passed_bytes += len(frame)
                yield frame


def _probes_in(frame: bytes) -> list[Probe]:
    """Warm-ups are none."""
    found = []
    at = frame.find(_BEFORE_VALUE)
    while at >= 0:
        begin = at + len(_BEFORE_VALUE)
        payload = frame[begin : begin + PAYLOAD_BYTES]
        if len(payload) == PAYLOAD_BYTES:
            agent = UUID(bytes=payload[:_AGENT_BYTES])
            name = decode_payload(agent, payload)
            if name and name.leg:
                found.append((agent, name))
        at = frame.find(_BEFORE_VALUE, begin)
    return found
