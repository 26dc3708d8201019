"""Fleetgauge's own processes beside the brokers: started with a log each, ended by their ids."""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.processes import Identity, end, identify

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One `fleetgauge` subcommand to run, or with ``module`` something else of ours.

    ``nice``: on two cores a batch of Spark must not delay a probe, or the
    agent measures the machine instead of the broker.
    """

    name: str
    arguments: tuple[str, ...]
    nice: int = 0
    grace_s: float = 10
    module: str = "fleetgauge_core"


@dataclass(slots=True)
class _Running:
    spec: ServiceSpec
    process: "subprocess.Popen[bytes]"
    identity: Identity


@dataclass(slots=True)
class Services:
    """What was started, ended in reverse order when the block is left."""

    logs: Path
    _running: list[_Running] = field(default_factory=list)
    _files: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in reversed(self._running):
            end([running.identity], running.spec.grace_s)
            running.process.wait()
        self._files.close()

    def start(self, spec: ServiceSpec) -> None:
        """Start one; its output goes to NAME.log."""
        log = self._files.enter_context(self.log(spec.name).open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", spec.module, *spec.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Its own group: ^C reaches the demo alone, which then ends them in order.
            start_new_session=True,
            preexec_fn=lambda: _before_exec(spec.nice),
        )
        self._running.append(_Running(spec, process, identify(process.pid)))

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def check(self) -> None:
        """Raises LocalFleetError if one has ended by itself."""
        for running in self._running:
            if running.process.poll() is not None:
                name, code = running.spec.name, running.process.returncode
                raise LocalFleetError(f"{name} ended with exit code {code}: see {self.log(name)}")

    def pids(self) -> dict[str, int]:
        return {running.spec.name: running.process.pid for running in self._running}


def _before_exec(nice: int) -> None:
    os.nice(nice)
    if sys.platform == "linux":
        # Should the starter be killed, this process is told to end as well.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
