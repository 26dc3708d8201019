"""The fleet's folder: what lies where, and how it is written so that a crash leaves no half file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import BrokerPlace, Layout, MirrorSpec
from fleetgauge_local.processes import Identity

T = TypeVar("T")


@dataclass(frozen=True)
class BrokerPlan:
    """How the runner starts one broker, where it keeps its files and whom it should see."""

    place: BrokerPlace
    command: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class MirrorPlan:
    """How the runner starts one mirror, and where it keeps its files."""

    spec: MirrorSpec
    command: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Plan:
    """What the runner is to run."""

    layout: Layout
    brokers: tuple[BrokerPlan, ...]
    mirrors: tuple[MirrorPlan, ...] = ()


@dataclass(frozen=True)
class RunningBroker:
    """A broker's process, for whoever has to end it if the runner cannot."""

    name: str
    identity: Identity
    client_port: int
    proxy_port: int


@dataclass(frozen=True)
class RunningMirror:
    """A mirror's process, for the same."""

    name: str
    identity: Identity


@dataclass(frozen=True)
class State:
    """What runs now."""

    runner: Identity
    socket: Path
    brokers: tuple[RunningBroker, ...]
    mirrors: tuple[RunningMirror, ...] = ()


@dataclass(frozen=True)
class Folder:
    """Paths below the fleet's folder."""

    root: Path

    @property
    def layout(self) -> Path:
        """Clusters, racks and ports."""
        return self.root / "layout.json"

    @property
    def plan(self) -> Path:
        """What the runner reads."""
        return self.root / "plan.json"

    @property
    def state(self) -> Path:
        """What the runner writes."""
        return self.root / "state.json"

    @property
    def runner_lock(self) -> Path:
        """Held as long as a runner lives."""
        return self.root / "runner.lock"

    @property
    def runner_log(self) -> Path:
        """What the runner and its proxies did."""
        return self.root / "runner.log"

    @property
    def runner_output(self) -> Path:
        """Why the runner ended, if it could not log it."""
        return self.root / "runner.out"

    @property
    def fleet_file(self) -> Path:
        """The fleet.yaml for the other commands."""
        return self.root / "fleet.yaml"

    @property
    def brokers(self) -> Path:
        """One folder per broker."""
        return self.root / "brokers"

    def broker(self, place: BrokerPlace) -> Path:
        """One broker's configuration, data and logs."""
        return self.brokers / place.name

    @property
    def mirrors(self) -> Path:
        """One folder per mirror."""
        return self.root / "mirrors"

    def mirror(self, name: str) -> Path:
        """One mirror's configuration and logs."""
        return self.mirrors / name


def write(path: Path, value: object) -> None:
    """Replace the file at once by this value as JSON."""
    content: bytes = TypeAdapter(type(value)).dump_json(value, indent=1)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)


def read(path: Path, kind: type[T]) -> T | None:
    """The value that was written there, if any."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise LocalFleetError(f"{path}: not written by this version: remove {path.parent}") from error
