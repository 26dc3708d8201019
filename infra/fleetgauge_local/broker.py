"""One broker under the runner: its process, its proxy and the faults that befall it."""

import asyncio
from collections.abc import Callable

from fleetgauge_local.child import Child
from fleetgauge_local.folder import BrokerPlan, RunningBroker
from fleetgauge_local.layout import HOST
from fleetgauge_local.messages import BrokerState, BrokerStatus
from fleetgauge_local.proxy import Proxy

_POLL_S = 0.05


class Broker:
    """Owns one process at a time; a killed one is started again on the same data and ports.

    ``changed`` is called whenever a process has come or gone.
    """

    def __init__(self, plan: BrokerPlan, changed: Callable[[], None]) -> None:
        self.place = plan.place
        self.proxy = Proxy(plan.place.name, HOST, plan.place.proxy_port, plan.place.client_port)
        self._child = Child(plan.place.name, plan.command, plan.folder, changed)
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process; clients get in when it listens."""
        await self._child.start()
        self._watch = asyncio.create_task(self._until_it_ends())

    @property
    def state(self) -> BrokerState:
        """How it stands; one that was never started is a spare, or is about to be."""
        return self._child.state or ("spare" if self.place.spare else "starting")

    def serves(self) -> None:
        """Say that it serves its clients."""
        self._child.state = "up"

    @property
    def running(self) -> RunningBroker | None:
        """What the state file says of it."""
        identity = self._child.identity
        if identity is None:
            return None
        return RunningBroker(self.place.name, identity, self.place.client_port, self.place.proxy_port)

    def status(self) -> BrokerStatus:
        """The broker as it is now."""
        return BrokerStatus(
            broker=self.place.broker,
            rack=self.place.rack,
            address=self.place.address,
            state=self.state,
            pid=self._child.pid,
            rss_mib=self._child.rss_mib,
            delay_ms=self.proxy.delay_s * 1000,
            share=self.proxy.share,
            blackhole=self.proxy.blackholed,
        )

    def hang(self, for_s: float | None) -> None:
        """Stop the process where it stands; wake it after that time, if one is given."""
        self._child.hang(for_s)

    async def kill(self) -> None:
        """End the process without a word; return when clients are refused."""
        await self._child.kill()
        await self.ended()

    async def heal(self) -> None:
        """Undo every fault."""
        self.proxy.heal()
        if self.state in ("dead", "spare"):
            await self.start()
        elif self.state == "hung":
            self._child.wake()

    async def ended(self) -> None:
        """Return when the process is gone."""
        if self._watch is not None:
            await self._watch

    async def _until_it_ends(self) -> None:
        opening = asyncio.create_task(self._let_clients_in())
        await self._child.ended()
        opening.cancel()
        await self.proxy.close()

    async def _let_clients_in(self) -> None:
        """Refuse connections until the broker takes them, as without a proxy."""
        while not await _listens(self.place.client_port):
            await asyncio.sleep(_POLL_S)
        await self.proxy.open()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True
