"""A process of the runner that can be started, suspended, resumed, killed and started again."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from fleetgauge_local.errors import RequestError
from fleetgauge_local.processes import ProcessIdentity, identify
from fleetgauge_local.runner_protocol import RunState

_log = logging.getLogger(__name__)

_MIB = 1 << 20


class SupervisedProcess:
    """A process and its state; the state is None before the first start.

    ``since_ms`` is the wall-clock time of the last start or resume, in milliseconds. ``changed`` is called
    whenever the process has started or ended.
    """

    def __init__(
        self, name: str, command: tuple[str, ...], folder: Path, changed: Callable[[], None]
    ) -> None:
        self.state: RunState | None = None
        self.identity: ProcessIdentity | None = None
        self.since_ms = 0
        self._name = name
        self._command = command
        self._folder = folder
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._wake: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the process; its output goes to stdout.log in its folder."""
        # Before the first await, so that a concurrent call does not start a second process.
        self.mark_starting()
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
        self._watch = asyncio.create_task(self._supervise(self._process))

    def mark_starting(self) -> None:
        """Set the state to ``starting``; its owner must check again that it serves."""
        self.state = "starting"
        self.since_ms = time.time_ns() // 1_000_000

    def hang(self, for_s: float | None) -> None:
        """Suspend the process (SIGSTOP), and resume it after ``for_s`` seconds if given.

        Raises: RequestError when no process runs.
        """
        self._signal(signal.SIGSTOP)
        self.state = "hung"
        self._cancel_wake()
        if for_s is not None:
            self._wake = asyncio.get_running_loop().call_later(for_s, self.wake)

    def wake(self) -> None:
        """Resume the suspended process (SIGCONT).

        Raises: RequestError when no process runs.
        """
        self._cancel_wake()
        self._signal(signal.SIGCONT)
        self.mark_starting()
        _log.info("%s: resumed", self._name)

    async def kill(self) -> None:
        """Kill the process (SIGKILL) and return when it has ended.

        Raises: RequestError when no process runs.
        """
        self._signal(signal.SIGKILL)
        await self.wait_until_ended()

    async def terminate(self, grace_s: float) -> None:
        """Let the process end in an orderly way (SIGTERM), kill it after ``grace_s``; return when it has
        ended.

        Raises: RequestError when no process runs.
        """
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self.wait_until_ended()
        except TimeoutError:
            await self.kill()

    async def wait_until_ended(self) -> None:
        """Return when the process has ended; at once if it was never started."""
        if self._watch is not None:
            await asyncio.shield(self._watch)

    @property
    def pid(self) -> int | None:
        """The process id; None while no process runs."""
        return self.identity.pid if self.identity else None

    @property
    def rss_mib(self) -> int | None:
        """The process's resident memory in MiB; None while no process runs."""
        if self.identity is None:
            return None
        try:
            return int(psutil.Process(self.identity.pid).memory_info().rss // _MIB)
        except psutil.NoSuchProcess:
            return None

    def _cancel_wake(self) -> None:
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

    async def _supervise(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._cancel_wake()
        self._process = None
        self.identity = None
        self.state = "dead"
        _log.info("%s: ended with exit code %d", self._name, code)
        self._changed()
