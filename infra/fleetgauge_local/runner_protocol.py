"""Requests and responses on the runner's Unix socket: one JSON line in each direction."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FaultKind = Literal["hang", "kill", "slow", "blackhole", "heal"]
RunState = Literal["starting", "up", "hung", "dead"]
BrokerState = Literal[RunState, "spare"]
#: Whether a broker of the cluster serves clients: now (up), soon (starting), or only after a heal (away).
ClusterState = Literal["up", "starting", "away"]
#: ``waiting``: the mirror starts when its target cluster serves. ``up``: it replicates.
MirrorState = Literal[RunState, "waiting"]


@dataclass(frozen=True)
class RunnerRequest:
    """A request to the runner.

    ``do`` is ``status``, ``down``, ``restart`` or ``fault``. A restart has a cluster and a broker; a fault
    has a kind, and a cluster and broker or a mirror.
    """

    do: Literal["status", "down", "fault", "restart"]
    kind: FaultKind | None = None
    cluster: str = ""
    broker: int = 0
    mirror: str = ""
    delay_ms: float | None = None
    share: float = 1
    for_s: float | None = None


@dataclass(frozen=True)
class BrokerFault:
    """A fault or heal that was applied to a broker. ``at`` is its time (RFC 3339, UTC)."""

    cluster: str
    broker: int
    kind: FaultKind
    at: str


@dataclass(frozen=True)
class BrokerRestart:
    """A broker that was restarted: when it was told to end, and when its new process was started."""

    cluster: str
    broker: int
    ended_at: str
    started_at: str


@dataclass(frozen=True)
class MirrorFault:
    """A fault or heal that was applied to a mirror. ``at`` is its time (RFC 3339, UTC)."""

    mirror: str
    kind: FaultKind
    at: str


@dataclass(frozen=True)
class BrokerStatus:
    """A broker's process and injected faults. ``pid`` and ``rss_mib`` are None while no process runs."""

    broker: int
    rack: str
    address: str
    state: BrokerState
    pid: int | None
    rss_mib: int | None
    delay_ms: float
    share: float
    blackhole: bool


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster's brokers and the ``bootstrap.servers`` of its clients."""

    cluster: str
    bootstrap: str
    brokers: tuple[BrokerStatus, ...]


@dataclass(frozen=True)
class MirrorStatus:
    """A mirror's process; ``mirror`` is its target cluster. ``pid`` is None while no process runs."""

    mirror: str
    sources: tuple[str, ...]
    state: MirrorState
    pid: int | None
    rss_mib: int | None


@dataclass(frozen=True)
class FleetStatus:
    """A fleet's clusters and mirrors.

    ``ready``: every broker except spares is up and knows its cluster's other brokers, and every mirror
    replicates.
    """

    directory: Path
    runner_pid: int
    ready: bool
    clusters: tuple[ClusterStatus, ...]
    mirrors: tuple[MirrorStatus, ...] = ()


@dataclass(frozen=True)
class RunnerResponse:
    """The runner's response to a request: exactly one field is set."""

    status: FleetStatus | None = None
    fault: BrokerFault | None = None
    mirror_fault: MirrorFault | None = None
    restart: BrokerRestart | None = None
    ended: int | None = None
    error: str | None = None
