"""A way of its own to the brokers of a local fleet, for a second vantage; on it each can be cut off."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from fleetgauge_local.layout import HOST, BrokerPlace, Layout
from fleetgauge_local.ports import free_ports
from fleetgauge_local.proxy import Proxy
from tests.listeners import Listener, more_listeners

_OPENS_WITHIN_S = 10


@dataclass(frozen=True, slots=True)
class _Door:
    proxy: Proxy
    listener: Listener


class SecondWay:
    """To every broker a listener behind a proxy, whose loop is another thread's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._doors: dict[tuple[str, int], _Door] = {}

    def listeners(self, layout: Layout, place: BrokerPlace) -> Mapping[str, Listener]:
        """That broker's, for a fleet whose brokers begin later."""
        inside, outside = self._ports_beside(layout)
        door = _Door(Proxy(place.name, HOST, outside, inside), Listener(inside, advertised=outside))
        asyncio.run_coroutine_threadsafe(door.proxy.open(), self._loop).result(_OPENS_WITHIN_S)
        self._doors[place.cluster, place.broker] = door
        return {"SECOND": door.listener}

    def bootstrap(self, cluster: str) -> str:
        doors = (door for (of, _), door in self._doors.items() if of == cluster)
        return ",".join(f"{HOST}:{door.listener.advertised}" for door in doors)

    @contextmanager
    def cut_off(self, cluster: str, broker: int) -> Iterator[None]:
        """Nothing passes to that broker or from it while the block runs."""
        proxy = self._doors[cluster, broker].proxy
        self._loop.call_soon_threadsafe(proxy.blackhole)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(proxy.heal)

    async def close(self) -> None:
        for door in self._doors.values():
            await door.proxy.close()

    def _ports_beside(self, layout: Layout) -> tuple[int, int]:
        """Two that are no broker's, of which nobody may listen yet."""
        inside = (door.listener.port for door in self._doors.values())
        taken = {*layout.ports, *inside}
        first, second = [one for one in free_ports(2 + len(taken), Random()) if one not in taken][:2]
        return first, second


@contextmanager
def second_way() -> Iterator[SecondWay]:
    """A fleet that is made within the block has it, and ends before it does."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="second-way")
    thread.start()
    way = SecondWay(loop)
    try:
        with more_listeners(way.listeners):
            yield way
    finally:
        asyncio.run_coroutine_threadsafe(way.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
