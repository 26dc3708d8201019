"""Proxies before a broker that delay probes and measure them: the expected results of an agent.

The measurement of a probe begins when its Produce request has arrived completely, and ends when the
acknowledgement, or the Fetch response that contains it, has been sent. Other requests are not delayed.
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
#: After the size: API key, version, correlation id; a response has only the correlation id.
_REQUEST = struct.Struct(">hhi")
_PRODUCE, _FETCH = 0, 1
#: In a record without a key: the lengths of the key (-1) and of a value of PAYLOAD_BYTES, as zigzag varints.
_BEFORE_VALUE = b"\x01\x80\x02"
_AGENT_BYTES = 16
_READ_BYTES = 2**22

#: The id of the agent's run, and the key of the probe.
Probe = tuple[UUID, ProbeKey]
#: Returns the delay in seconds of a leg's n-th probe.
Delay = Callable[[int], float]


@dataclass
class ProxyMeasurements:
    """Latencies in microseconds of the probes that passed a proxy, and its traffic in total."""

    acked_us: dict[Probe, int] = field(default_factory=dict)
    received_us: dict[Probe, int] = field(default_factory=dict)
    requests: Counter[int] = field(default_factory=Counter)
    passed_bytes: int = 0
    connections: int = 0

    def list_latencies(self, leg: Leg) -> list[int]:
        """Return the latencies in microseconds that an agent should have measured on the leg, ascending."""
        latencies_us = self.received_us if leg is Leg.CLIENT else self.acked_us
        return sorted(latency_us for (_, key), latency_us in latencies_us.copy().items() if key.leg is leg)


@contextmanager
def run_proxies(targets: Mapping[int, tuple[int, Delay]]) -> Iterator[Mapping[int, ProxyMeasurements]]:
    """Run proxies within the block, and yield their measurements by port.

    ``targets`` has the upstream port and the delay of each proxy, by the port on which it listens.
    """
    measurements = {port: ProxyMeasurements() for port in targets}
    ready, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        servers = [
            await asyncio.start_server(
                _DelayingProxy(upstream, delay, measurements[port]).forward, HOST, port
            )
            for port, (upstream, delay) in targets.items()
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
        yield measurements
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


class _DelayingProxy:
    def __init__(self, upstream: int, delay: Delay, measurements: ProxyMeasurements) -> None:
        self._upstream = upstream
        self._delay = delay
        self._measurements = measurements
        self._arrived_ns: dict[Probe, int] = {}

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection of a client until either end closes it."""
        from_broker, to_broker = await asyncio.open_connection(HOST, self._upstream, limit=_READ_BYTES)
        self._measurements.connections += 1
        pending: dict[int, tuple[int, bytes]] = {}
        directions = [
            asyncio.create_task(self._forward_requests(reader, to_broker, pending)),
            asyncio.create_task(self._forward_responses(from_broker, writer, pending)),
        ]
        try:
            done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in done:
                direction.result()
        finally:
            self._measurements.connections -= 1
            for direction in directions:
                direction.cancel()
            for end in (to_broker, writer):
                end.close()

    async def _forward_requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pending: dict[int, tuple[int, bytes]],
    ) -> None:
        async for frame in self._read_frames(reader):
            key, _, correlation = _REQUEST.unpack_from(frame, _SIZE.size)
            self._measurements.requests[key] += 1
            pending[correlation] = key, frame if key == _PRODUCE else b""
            if key == _PRODUCE:
                arrived_ns = time.monotonic_ns()
                probes = _find_probes(frame)
                self._arrived_ns |= dict.fromkeys(probes, arrived_ns)
                await asyncio.sleep(max((self._delay(key.sequence) for _, key in probes), default=0))
            writer.write(frame)

    async def _forward_responses(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pending: dict[int, tuple[int, bytes]],
    ) -> None:
        async for frame in self._read_frames(reader):
            (correlation,) = _SIZE.unpack_from(frame, _SIZE.size)
            key, request = pending.pop(correlation)
            writer.write(frame)
            sent_ns = time.monotonic_ns()
            if key == _PRODUCE:
                self._record(self._measurements.acked_us, _find_probes(request), sent_ns)
            elif key == _FETCH:
                self._record(self._measurements.received_us, _find_probes(frame), sent_ns)

    def _record(self, latencies_us: dict[Probe, int], probes: list[Probe], sent_ns: int) -> None:
        for probe in probes:
            # Fetch responses also contain the probes of other agents.
            if probe in self._arrived_ns:
                latencies_us[probe] = (sent_ns - self._arrived_ns[probe]) // 1000

    async def _read_frames(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = await reader.readexactly(_SIZE.size)
                frame = size + await reader.readexactly(*_SIZE.unpack(size))
                self._measurements.passed_bytes += len(frame)
                yield frame


def _find_probes(frame: bytes) -> list[Probe]:
    """Return the probes in a frame, without those of the warm-up."""
    probes = []
    at = frame.find(_BEFORE_VALUE)
    while at >= 0:
        begin = at + len(_BEFORE_VALUE)
        payload = frame[begin : begin + PAYLOAD_BYTES]
        if len(payload) == PAYLOAD_BYTES:
            agent = UUID(bytes=payload[:_AGENT_BYTES])
            key = decode_payload(agent, payload)
            if key and key.leg:
                probes.append((agent, key))
        at = frame.find(_BEFORE_VALUE, begin)
    return probes
