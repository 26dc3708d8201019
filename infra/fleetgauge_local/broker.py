"""One broker under the runner: its process, its proxy and the faults that befall it."""

import asyncio
import logging
import signal
from collections.abc import Callable

import psutil

from fleetgauge_local.errors import RequestError
from fleetgauge_local.folder import BrokerPlan, RunningBroker
from fleetgauge_local.layout import HOST
from fleetgauge_local.messages import BrokerState, BrokerStatus
from fleetgauge_local.processes import Identity, identify
from fleetgauge_local.proxy import Proxy

_log = logging.getLogger(__name__)

_MIB = 1 << 20
_POLL_S = 0.05


class Broker:
    """Owns one process at a time; a killed one is started again on the same data and ports.

    ``changed`` is called whenever a process has come or gone.
    """

    def __init__(self, plan: BrokerPlan, changed: Callable[[], None]) -> None:
        self.place = plan.place
        self.proxy = Proxy(plan.place.name, HOST, plan.place.proxy_port, plan.place.client_port)
        self.state: BrokerState = "spare" if plan.place.spare else "starting"
        self._plan = plan
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._identity: Identity | None = None
        self._watch: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._wake: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the process; clients get in when it listens."""
        output = self._plan.folder / "stdout.log"
        with output.open("wb") as stdout:
            self._process = await asyncio.create_subprocess_exec(
                *self._plan.command,
                cwd=self._plan.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=asyncio.subprocess.STDOUT,
            )
        self._identity = identify(self._process.pid)
        self.state = "starting"
        self._changed()
        _log.info("%s: started, pid %d", self.place.name, self._process.pid)
        self._watch = asyncio.create_task(self._until_it_ends(self._process))
        self._opening = asyncio.create_task(self._let_clients_in())

    @property
    def running(self) -> RunningBroker | None:
        """What the state file says of it."""
        if self._identity is None:
            return None
        return RunningBroker(self.place.name, self._identity, self.place.client_port, self.place.proxy_port)

    def status(self) -> BrokerStatus:
        """The broker as it is now."""
        return BrokerStatus(
            broker=self.place.broker,
            rack=self.place.rack,
            address=self.place.address,
            state=self.state,
            pid=self._identity.pid if self._identity else None,
            rss_mib=self._rss_mib(),
            delay_ms=self.proxy.delay_s * 1000,
            share=self.proxy.share,
            blackhole=self.proxy.blackholed,
        )

    def hang(self, for_s: float | None) -> None:
        """Stop the process where it stands; wake it after that time, if one is given."""
        self._signal(signal.SIGSTOP)
        self.state = "hung"
        self._forget_waking()
        if for_s is not None:
            self._wake = asyncio.get_running_loop().call_later(for_s, self._continue)

    async def kill(self) -> None:
        """End the process without a word; return when the kernel has taken it away."""
        self._signal(signal.SIGKILL)
        if self._watch is not None:
            await self._watch

    async def heal(self) -> None:
        """Undo every fault."""
        self.proxy.heal()
        if self._process is None:
            await self.start()
        elif self.state == "hung":
            self._continue()

    async def ended(self) -> None:
        """Return when the process is gone."""
        if self._watch is not None:
            await self._watch

    def _continue(self) -> None:
        """Let it run again; whether it serves its clients is asked afresh."""
        self._forget_waking()
        self._signal(signal.SIGCONT)
        self.state = "starting"
        _log.info("%s: continues", self.place.name)

    def _forget_waking(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _signal(self, number: signal.Signals) -> None:
        try:
            if self._process is None:
                raise ProcessLookupError
            self._process.send_signal(number)
        except ProcessLookupError as error:
            raise RequestError(f"{self.place.name} is dead: heal it first") from error
        _log.info("%s: sent %s", self.place.name, number.name)

    async def _let_clients_in(self) -> None:
        """Refuse connections until the broker takes them, as without a proxy."""
        while not await _listens(self.place.client_port):
            await asyncio.sleep(_POLL_S)
        await self.proxy.open()

    async def _until_it_ends(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._forget_waking()
        if self._opening is not None:
            self._opening.cancel()
        self._process = None
        self._identity = None
        self.state = "dead"
        _log.info("%s: ended with %d", self.place.name, code)
        self._changed()
        await self.proxy.close()

    def _rss_mib(self) -> int | None:
        if self._identity is None:
            return None
        try:
            return int(psutil.Process(self._identity.pid).memory_info().rss // _MIB)
        except psutil.NoSuchProcess:
            return None


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True
