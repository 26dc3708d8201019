"""Paths and JSON files of a fleet's folder; a file is replaced atomically, so it is never incomplete."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import BrokerPlacement, FleetLayout, MirrorSpec
from fleetgauge_local.processes import ProcessIdentity

T = TypeVar("T")


@dataclass(frozen=True)
class BrokerPlan:
    """A broker's placement, command line and folder."""

    placement: BrokerPlacement
    command: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class MirrorPlan:
    """A mirror's specification, command line and folder."""

    spec: MirrorSpec
    command: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class FleetPlan:
    """The brokers and mirrors that the runner starts; stored as plan.json."""

    layout: FleetLayout
    brokers: tuple[BrokerPlan, ...]
    mirrors: tuple[MirrorPlan, ...] = ()


@dataclass(frozen=True)
class RunningBroker:
    """A running broker's process, recorded so that it can be ended if the runner was killed."""

    name: str
    identity: ProcessIdentity
    client_port: int
    proxy_port: int


@dataclass(frozen=True)
class RunningMirror:
    """A running mirror's process, recorded so that it can be ended if the runner was killed."""

    name: str
    identity: ProcessIdentity


@dataclass(frozen=True)
class RunnerState:
    """The runner's process, socket, brokers and mirrors; stored as state.json."""

    runner: ProcessIdentity
    socket: Path
    brokers: tuple[RunningBroker, ...]
    mirrors: tuple[RunningMirror, ...] = ()


@dataclass(frozen=True)
class FleetFolder:
    """The paths in a fleet's folder."""

    root: Path

    @property
    def layout(self) -> Path:
        """The file with clusters, racks and ports."""
        return self.root / "layout.json"

    @property
    def plan(self) -> Path:
        """The file from which the runner reads its plan."""
        return self.root / "plan.json"

    @property
    def state(self) -> Path:
        """The file to which the runner writes its state."""
        return self.root / "state.json"

    @property
    def runner_lock(self) -> Path:
        """The file that a runner keeps locked as long as it runs."""
        return self.root / "runner.lock"

    @property
    def runner_log(self) -> Path:
        """The log file of the runner and its proxies."""
        return self.root / "runner.log"

    @property
    def runner_output(self) -> Path:
        """The runner's standard output and error, for failures before logging starts."""
        return self.root / "runner.out"

    @property
    def fleet_file(self) -> Path:
        """The fleet.yaml that describes this fleet to the other commands."""
        return self.root / "fleet.yaml"

    @property
    def brokers(self) -> Path:
        """The folder that has one subfolder per broker."""
        return self.root / "brokers"

    def broker(self, placement: BrokerPlacement) -> Path:
        """Return the folder of a broker's configuration, data and logs."""
        return self.brokers / placement.name

    @property
    def mirrors(self) -> Path:
        """The folder that has one subfolder per mirror."""
        return self.root / "mirrors"

    def mirror(self, name: str) -> Path:
        """Return the folder of a mirror's configuration and logs."""
        return self.mirrors / name


@cache
def _create_adapter(kind: Any) -> TypeAdapter[Any]:
    # Creating one takes longer than reading a file, and waiting for a fleet reads one ten times a second.
    return TypeAdapter(kind)


def write_json(path: Path, value: object) -> None:
    """Replace the file atomically with the value as JSON."""
    content: bytes = _create_adapter(cast(Any, type(value))).dump_json(value, indent=1)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def read_json(path: Path, kind: type[T]) -> T | None:
    """Return the value stored in the file; None if there is no file.

    Raises: LocalFleetError when the file does not have this type's format.
    """
    try:
        value: T = _create_adapter(cast(Any, kind)).validate_json(path.read_bytes())
        return value
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise LocalFleetError(f"{path}: written by an incompatible version: remove {path.parent}") from error
