"""What is said over the runner's socket: one JSON line each way."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["hang", "kill", "slow", "blackhole", "heal"]
RunState = Literal["starting", "up", "hung", "dead"]
BrokerState = Literal[RunState, "spare"]
#: Whether a cluster has anybody for its clients: now, soon, or not before it is healed.
ClusterState = Literal["up", "starting", "away"]
#: ``waiting``: it is to start when its target serves. ``up``: it copies.
MirrorState = Literal[RunState, "waiting"]


@dataclass(frozen=True)
class Request:
    """``status``, ``down``, or a ``fault`` with its kind, and its cluster and broker or its mirror."""

    do: Literal["status", "down", "fault"]
    kind: Kind | None = None
    cluster: str = ""
    broker: int = 0
    mirror: str = ""
    delay_ms: float | None = None
    share: float = 1
    for_s: float | None = None


@dataclass(frozen=True)
class Fault:
    """What was done to which broker, and when (RFC 3339, UTC)."""

    cluster: str
    broker: int
    kind: Kind
    at: str


@dataclass(frozen=True)
class MirrorFault:
    """What was done to which mirror, and when (RFC 3339, UTC)."""

    mirror: str
    kind: Kind
    at: str


@dataclass(frozen=True)
class BrokerStatus:
    """One broker. ``pid`` is there while its process lives."""

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
    """One cluster and where its clients start."""

    cluster: str
    bootstrap: str
    brokers: tuple[BrokerStatus, ...]


@dataclass(frozen=True)
class MirrorStatus:
    """One mirror, called as the cluster that it copies into. ``pid`` is there while its process lives."""

    mirror: str
    sources: tuple[str, ...]
    state: MirrorState
    pid: int | None
    rss_mib: int | None


@dataclass(frozen=True)
class FleetStatus:
    """The fleet. ``ready`` when every broker that is no spare is up and knows its cluster's others, and
    every mirror copies.
    """

    directory: Path
    runner_pid: int
    ready: bool
    clusters: tuple[ClusterStatus, ...]
    mirrors: tuple[MirrorStatus, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The runner's answer: exactly one of the five."""

    status: FleetStatus | None = None
    fault: Fault | None = None
    mirror_fault: MirrorFault | None = None
    ended: int | None = None
    error: str | None = None
