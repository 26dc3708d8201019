"""What is said over the runner's socket: one JSON line each way."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["hang", "kill", "slow", "blackhole", "heal"]
RunState = Literal["starting", "up", "hung", "dead"]
BrokerState = Literal[RunState, "spare"]


@dataclass(frozen=True)
class Request:
    """``status``, ``down``, or a ``fault`` with its cluster, broker and kind."""

    do: Literal["status", "down", "fault"]
    kind: Kind | None = None
    cluster: str = ""
    broker: int = 0
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
class FleetStatus:
    """The fleet. ``ready`` when every broker that is no spare is up and knows its cluster's others."""

    directory: Path
    runner_pid: int
    ready: bool
    clusters: tuple[ClusterStatus, ...]


@dataclass(frozen=True)
class Answer:
    """The runner's answer: exactly one of the four."""

    status: FleetStatus | None = None
    fault: Fault | None = None
    ended: int | None = None
    error: str | None = None
