"""Connections that are held to every broker of a cluster, to learn when a broker's process ends.

Motivation: no request tells how long a broker's process has been running, and a quick restart hides between
two looks. But a process that ends closes its connections, which a network that drops packets does not.

Approach: a connection sends ApiVersions once, which every listener answers before authentication, and is idle
from then on. A listener with SASL accepts no second ApiVersions, and idle connections are closed by brokers
(after ten minutes, connections.max.idle.ms) and by load balancers, so each is replaced within a minute: the
new one is opened first. TCP keep-alive finds out about a host that has crashed, once it is back.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from random import random
from threading import Thread
from typing import NamedTuple

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.api_versions import KafkaVersion, parse_kafka_version
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.credentials import create_tls_context
from fleetgauge_core.kafka.endpoint_probe import connect_to_first, exchange_api_versions
from fleetgauge_core.kafka.errors import CredentialsUnreadableError
from fleetgauge_core.kafka.name_resolver import NameResolver
from fleetgauge_core.metadata import ConnectionEvent, ConnectionEventKind

_REPLACE_AFTER_S = 60.0
#: While a broker starts, the first pause; one that stays away is tried less often.
_RETRY_S, _RETRY_AWAY_S = 0.25, 2.0
_AWAY_AFTER_S = 120.0
_OPEN_TIMEOUT_S = 5.0
_STEP_TIMEOUT_S = 2.0
#: The first keep-alive probe, and the interval between them; the connection is given up after as many without
#: an answer, which is later than most networks are cut.
_KEEPALIVE_S, _KEEPALIVE_PROBES = 15, 40
#: More than a cluster's brokers can cause between two looks: what is older is of no use.
_MAX_EVENTS = 10_000


class BrokerAddress(NamedTuple):
    """Where a broker's client listener is."""

    host: str
    port: int


class _Connection:
    """An open connection, and a task that ends with it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: KafkaVersion
    ) -> None:
        self.version = version
        self._writer = writer
        self._end = asyncio.create_task(_wait_for_end(reader))

    async def wait(self, timeout_s: float) -> bool:
        """Return whether the connection ends within that time."""
        await asyncio.wait({self._end}, timeout=timeout_s)
        return self._end.done()

    @property
    def was_closed_by_peer(self) -> bool:
        """Whether the other side closed or reset the connection; else it did not answer any more."""
        return self._end.done() and not self._end.cancelled() and self._end.result()

    def abort(self) -> None:
        self._end.cancel()
        self._writer.transport.abort()


async def _wait_for_end(reader: asyncio.StreamReader) -> bool:
    try:
        # A broker says nothing unasked.
        while await reader.read(4096):
            pass
    except ConnectionError:
        return True
    except OSError:
        return False
    return True


class HeldConnections:
    """Connections to the brokers of one cluster, in a thread of their own from ``start`` to ``stop``."""

    def __init__(
        self,
        access: ClusterAccess,
        clock: Callable[[], datetime],
        on_event: Callable[[], None],
        chance: Callable[[], float] = random,
    ) -> None:
        """``on_event`` is called, in the thread of the connections, after every event.

        ``chance`` returns uniform random numbers in [0, 1): connections are not all replaced at once.
        """
        self._chance = chance
        self._access = access
        self._clock = clock
        self._on_event = on_event
        self._events: deque[ConnectionEvent] = deque(maxlen=_MAX_EVENTS)
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._tasks: dict[int, tuple[BrokerAddress, asyncio.Task[None]]] = {}
        self._resolver = NameResolver()
        self._tls: tuple[tuple[object, ...], ssl.SSLContext | None] | None = None

    def start(self) -> None:
        """Start the thread, without a connection yet."""
        self._thread = Thread(target=self._run, name="held-connections", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and end the thread."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def hold(self, brokers: Mapping[int, BrokerAddress]) -> None:
        """Hold a connection to each of these brokers, and to no other one, from now on."""
        self._loop.call_soon_threadsafe(self._set_brokers, dict(brokers))

    def take_events(self) -> tuple[ConnectionEvent, ...]:
        """Return what happened since the last call, in order."""
        events = []
        with suppress(IndexError):
            while True:
                events.append(self._events.popleft())
        return tuple(events)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stopping.wait())

    def _set_brokers(self, brokers: Mapping[int, BrokerAddress]) -> None:
        for broker_id, (address, task) in tuple(self._tasks.items()):
            if brokers.get(broker_id) != address:
                task.cancel()
                del self._tasks[broker_id]
        for broker_id, address in brokers.items():
            if broker_id not in self._tasks:
                task = self._loop.create_task(self._hold(broker_id, address))
                self._tasks[broker_id] = address, task

    async def _hold(self, broker_id: int, address: BrokerAddress) -> None:
        away_at_s = time.monotonic() + _AWAY_AFTER_S
        while True:
            connection = await self._open(address)
            if connection is None:
                is_away = time.monotonic() > away_at_s
                await asyncio.sleep(_RETRY_AWAY_S if is_away else _RETRY_S)
                continue
            self._record(broker_id, ConnectionEventKind.OPENED, connection.version)
            if await self._keep_until_end(connection, address):
                self._record(broker_id, ConnectionEventKind.ENDED, None)
            away_at_s = time.monotonic() + _AWAY_AFTER_S

    async def _keep_until_end(self, connection: _Connection, address: BrokerAddress) -> bool:
        """Replace the connection again and again; return whether the other side ended the last one."""
        try:
            while not await connection.wait(_REPLACE_AFTER_S * (0.5 + 0.5 * self._chance())):
                replacement = await self._open(address)
                if replacement is None:
                    continue
                if connection.was_closed_by_peer:
                    replacement.abort()
                    break
                connection.abort()
                connection = replacement
            return connection.was_closed_by_peer
        finally:
            connection.abort()

    async def _open(self, address: BrokerAddress) -> _Connection | None:
        """Return a connection over which the broker has answered; None if it does not answer."""
        try:
            tls = self._find_tls_context()
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                addresses = await self._resolver.resolve(address.host)
                reader, writer = await connect_to_first(
                    addresses or [address.host], address.port, _STEP_TIMEOUT_S
                )
                try:
                    version = await _greet(reader, writer, tls, address.host)
                except BaseException:
                    writer.transport.abort()
                    raise
        except (
            OSError,
            UnicodeError,
            asyncio.IncompleteReadError,
            struct.error,
            MemoryError,
            CredentialsUnreadableError,
        ):
            return None
        if version is None:
            writer.transport.abort()
            return None
        return _Connection(reader, writer, version)

    def _find_tls_context(self) -> ssl.SSLContext | None:
        """Return the context of the present certificates: to load those of a system takes 50 ms."""
        file_versions = tuple(self._access.file_versions())
        if self._tls is None or self._tls[0] != file_versions:
            self._tls = file_versions, create_tls_context(self._access)
        return self._tls[1]

    def _record(self, broker_id: int, kind: ConnectionEventKind, version: KafkaVersion | None) -> None:
        self._events.append(ConnectionEvent(broker_id, self._clock(), kind, version))
        self._on_event()


async def _greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext | None, host: str
) -> KafkaVersion | None:
    """Secure the connection and exchange ApiVersions; return Kafka's version; None for another server."""
    _enable_keepalive(writer.get_extra_info("socket"))
    if tls:
        await writer.start_tls(tls, server_hostname=host)
    frame = await exchange_api_versions(reader, writer)
    return None if isinstance(frame, ConnectionFailure) else parse_kafka_version(frame)


def _enable_keepalive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # Linux; other systems keep their own intervals.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
