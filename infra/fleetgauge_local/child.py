"""One process under the runner: started, stopped where it stands, killed, started again."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from fleetgauge_local.errors import RequestError
from fleetgauge_local.messages import RunState
from fleetgauge_local.processes import Identity, identify

_log = logging.getLogger(__name__)

_MIB = 1 << 20


class Child:
    """Owns one process at a time, and says how it stands: None before the first one.

    ``since_ms`` is when it last began, by the wall clock. ``changed`` is called whenever a process has come
    or gone.
    """

    def __init__(
        self, name: str, command: tuple[str, ...], folder: Path, changed: Callable[[], None]
    ) -> None:
        self.state: RunState | None = None
        self.identity: Identity | None = None
        self.since_ms = 0
        self._name = name
        self._command = command
        self._folder = folder
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._wake: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the process; what it says goes to a file in its folder."""
        # First of all, so that nobody starts another meanwhile.
        self.begin()
        with (self._folder / "stdout.log").open("wb") as stdout:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=asyncio.subprocess.STDOUT,
            )
        self.identity = identify(self._process.pid)
        self._changed()
        _log.info("%s: started, pid %d", self._name, self._process.pid)
        self._watch = asyncio.create_task(self._until_it_ends(self._process))

    def begin(self) -> None:
        """From now on it has to show that it does its work."""
        self.state = "starting"
        self.since_ms = time.time_ns() // 1_000_000

    def hang(self, for_s: float | None) -> None:
        """Stop the process where it stands; wake it after that time, if one is given."""
        self._signal(signal.SIGSTOP)
        self.state = "hung"
        self._forget_waking()
        if for_s is not None:
            self._wake = asyncio.get_running_loop().call_later(for_s, self.wake)

    def wake(self) -> None:
        """Let it run again."""
        self._forget_waking()
        self._signal(signal.SIGCONT)
        self.begin()
        _log.info("%s: continues", self._name)

    async def kill(self) -> None:
        """End the process without a word; return when the kernel has taken it away."""
        self._signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> None:
        """Return when the process is gone."""
        if self._watch is not None:
            await self._watch

    @property
    def pid(self) -> int | None:
        """The process's id while it lives."""
        return self.identity.pid if self.identity else None

    @property
    def rss_mib(self) -> int | None:
        """Its resident memory while it lives."""
        if self.identity is None:
            return None
        try:
            return int(psutil.Process(self.identity.pid).memory_info().rss // _MIB)
        except psutil.NoSuchProcess:
            return None

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
            raise RequestError(f"{self._name} is dead: heal it first") from error
        _log.info("%s: sent %s", self._name, number.name)

    async def _until_it_ends(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._forget_waking()
        self._process = None
        self.identity = None
        self.state = "dead"
        _log.info("%s: ended with %d", self._name, code)
        self._changed()
