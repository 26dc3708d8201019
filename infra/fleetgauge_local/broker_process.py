"""One broker of the runner: its process, its client proxy and the faults injected into it."""

import asyncio
from collections.abc import Callable

from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet_folder import BrokerPlan, RunningBroker
from fleetgauge_local.layout import HOST
from fleetgauge_local.proxy import Proxy
from fleetgauge_local.runner_protocol import BrokerState, BrokerStatus
from fleetgauge_local.supervised_process import SupervisedProcess

_POLL_S = 0.05


class BrokerProcess:
    """A broker's process and client proxy; after a kill it restarts with the same data and ports.

    ``changed`` is called whenever the process has started or ended.
    """

    def __init__(self, plan: BrokerPlan, changed: Callable[[], None]) -> None:
        self.placement = plan.placement
        self.proxy = Proxy(plan.placement.name, HOST, plan.placement.proxy_port, plan.placement.client_port)
        self._child = SupervisedProcess(plan.placement.name, plan.command, plan.folder, changed)
        self._watch: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        """Held while the process is ended and started again, so that two requests do not start it twice."""

    async def start(self) -> None:
        """Start the process; the proxy opens when the broker listens."""
        await self._child.start()
        self._watch = asyncio.create_task(self._supervise())

    @property
    def state(self) -> BrokerState:
        """The broker's state; before its first start ``spare`` or ``starting``."""
        return self._child.state or ("spare" if self.placement.spare else "starting")

    def mark_up(self) -> None:
        """Set the state to ``up``: the broker serves clients."""
        self._child.state = "up"

    @property
    def running(self) -> RunningBroker | None:
        """The entry in the runner's state file; None while no process runs."""
        identity = self._child.identity
        if identity is None:
            return None
        return RunningBroker(
            self.placement.name, identity, self.placement.client_port, self.placement.proxy_port
        )

    def status(self) -> BrokerStatus:
        """Return the broker's current status."""
        return BrokerStatus(
            broker=self.placement.broker,
            rack=self.placement.rack,
            address=self.placement.address,
            state=self.state,
            pid=self._child.pid,
            rss_mib=self._child.rss_mib,
            delay_ms=self.proxy.delay_s * 1000,
            share=self.proxy.share,
            blackhole=self.proxy.blackholed,
        )

    def hang(self, for_s: float | None) -> None:
        """Suspend the process (SIGSTOP), and resume it after ``for_s`` seconds if given."""
        self._child.hang(for_s)

    async def kill(self) -> None:
        """Kill the process (SIGKILL) and return when the proxy refuses clients."""
        await self._child.kill()
        await self.wait_until_ended()

    async def restart(self, grace_s: float, check: Callable[[], None]) -> None:
        """Let the process end in an orderly way, within ``grace_s``, and start it again.

        ``check`` raises if it must not be started any more. Raises: RequestError if it is not up.
        """
        async with self._starting:
            await self._terminate(grace_s)
            check()
            await self.start()

    async def _terminate(self, grace_s: float) -> None:
        if self.state != "up":
            raise RequestError(
                f"{self.placement.name} is {self.state}: only a broker that is up can be restarted"
            )
        await self._child.terminate(grace_s)
        await self.wait_until_ended()

    async def heal(self) -> None:
        """Undo every fault: reset the proxy, restart a dead or spare broker, resume a hung one."""
        self.proxy.heal()
        async with self._starting:
            if self.state in ("dead", "spare"):
                await self.start()
            elif self.state == "hung":
                self._child.wake()

    async def wait_until_ended(self) -> None:
        """Return when the process has ended and the proxy is closed."""
        if self._watch is not None:
            await self._watch

    async def _supervise(self) -> None:
        opening = asyncio.create_task(self._open_proxy_when_listening())
        await self._child.wait_until_ended()
        opening.cancel()
        await self.proxy.close()

    async def _open_proxy_when_listening(self) -> None:
        """Open the proxy once the broker listens; until then clients are refused, as without a proxy."""
        while not await _is_listening(self.placement.client_port):
            await asyncio.sleep(_POLL_S)
        await self.proxy.open()


async def _is_listening(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True
