"""Separate listeners on the brokers of a local fleet for a second vantage, which can be cut off."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from fleetgauge_local.layout import HOST, BrokerPlacement, FleetLayout
from fleetgauge_local.ports import find_free_ports
from fleetgauge_local.proxy import Proxy
from tests.listeners import Listener, add_listeners

_OPEN_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class _ProxiedListener:
    proxy: Proxy
    listener: Listener


class SecondListeners:
    """A proxied listener of every broker; the proxies run on the event loop of another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listeners: dict[tuple[str, int], _ProxiedListener] = {}

    def create(self, layout: FleetLayout, place: BrokerPlacement) -> Mapping[str, Listener]:
        """Return the additional listener of a broker that will start later."""
        port, proxy_port = self._find_free_ports(layout)
        proxied = _ProxiedListener(
            Proxy(place.name, HOST, proxy_port, port), Listener(port, advertised=proxy_port)
        )
        asyncio.run_coroutine_threadsafe(proxied.proxy.open(), self._loop).result(_OPEN_TIMEOUT_S)
        self._listeners[place.cluster, place.broker] = proxied
        return {"SECOND": proxied.listener}

    def bootstrap(self, cluster: str) -> str:
        listeners = (proxied for (name, _), proxied in self._listeners.items() if name == cluster)
        return ",".join(f"{HOST}:{proxied.listener.advertised}" for proxied in listeners)

    @contextmanager
    def cut_off(self, cluster: str, broker: int) -> Iterator[None]:
        """Drop all traffic of the broker's second listener while the block runs."""
        proxy = self._listeners[cluster, broker].proxy
        self._loop.call_soon_threadsafe(proxy.blackhole)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(proxy.heal)

    async def close(self) -> None:
        for proxied in self._listeners.values():
            await proxied.proxy.close()

    def _find_free_ports(self, layout: FleetLayout) -> tuple[int, int]:
        """Return two ports that no listener of any broker uses."""
        listener_ports = (proxied.listener.port for proxied in self._listeners.values())
        taken = {*layout.ports, *listener_ports}
        first, second = [port for port in find_free_ports(2 + len(taken), Random()) if port not in taken][:2]
        return first, second


@contextmanager
def create_second_listeners() -> Iterator[SecondListeners]:
    """Give the local fleets that are created and stopped within the block a second listener."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="second-listeners")
    thread.start()
    listeners = SecondListeners(loop)
    try:
        with add_listeners(listeners.create):
            yield listeners
    finally:
        asyncio.run_coroutine_threadsafe(listeners.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
