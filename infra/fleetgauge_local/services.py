"""Run Fleetgauge's own processes beside the brokers, each with a log file."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.processes import ProcessIdentity, identify, terminate_all

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A `fleetgauge` subcommand to run, or another Python module of the product.

    ``nice`` lowers the priority: on two cores a Spark batch must not delay probes, or the agent would measure
    the machine rather than the brokers. ``grace_s`` is the time to end after SIGTERM, in seconds.
    ``environment`` is added to the variables of this process.
    """

    name: str
    arguments: tuple[str, ...]
    nice: int = 0
    grace_s: float = 10
    module: str = "fleetgauge_core"
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class _Running:
    spec: ServiceSpec
    process: "subprocess.Popen[bytes]"
    identity: ProcessIdentity


@dataclass(slots=True)
class Services:
    """Started services; leaving the context ends them in reverse order."""

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
            terminate_all([running.identity], running.spec.grace_s)
            running.process.wait()
        self._files.close()

    def start(self, spec: ServiceSpec) -> None:
        """Start a service; its output goes to NAME.log in the log folder."""
        # Readable by its owner only: the dashboards print a secret at their start.
        file = os.open(self.log_path(spec.name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        log = self._files.enter_context(os.fdopen(file, "wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", spec.module, *spec.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **spec.environment},
            # In its own session: Ctrl-C reaches only the demo, which then ends the services in order.
            start_new_session=True,
            preexec_fn=lambda: _before_exec(spec.nice),
        )
        self._running.append(_Running(spec, process, identify(process.pid)))

    def log_path(self, name: str) -> Path:
        """Return the log file of the service with this name."""
        return self.logs / f"{name}.log"

    def check_running(self) -> None:
        """Check that no service has ended by itself.

        Raises: LocalFleetError when a service has ended.
        """
        for running in self._running:
            if running.process.poll() is not None:
                name, code = running.spec.name, running.process.returncode
                raise LocalFleetError(f"{name} ended with exit code {code}: see {self.log_path(name)}")

    def pids(self) -> dict[str, int]:
        """Return the process ids by service name."""
        return {running.spec.name: running.process.pid for running in self._running}


def _before_exec(nice: int) -> None:
    os.nice(nice)
    if sys.platform == "linux":
        # The kernel sends SIGTERM to this process if its parent is killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
