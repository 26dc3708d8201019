"""Replication delays, acknowledgements and loops, computed from the tracers of one run.

A mirror keeps the order of a partition: a tracer that is missing when a later one has arrived will not
arrive, or arrived before the destination was observed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

#: More than one hour of tracers at one per second.
_MAX_REMEMBERED = 10_000

K = TypeVar("K")
V = TypeVar("V")


class MirrorRoute(NamedTuple):
    """The source and destination cluster of a mirror."""

    source: str
    destination: str


class TracerMapping(NamedTuple):
    """The offsets of one tracer in the source and the destination cluster."""

    route: MirrorRoute
    src_offset: int
    dst_offset: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class MirrorDelay:
    """The replication delay of one mirror in one interval. ``delays_ms`` has each tracer that arrived.

    ``late_s`` estimates the delay of a record produced now: the delay of the last tracer that arrived, or
    the age of the oldest that has not, whichever is longer. None if there is no tracer.
    """

    delays_ms: tuple[int, ...] = ()
    late_s: float | None = None
    looped: int = 0
    """How many of the source's tracers were replicated back to it."""

    def merge(self, later: "MirrorDelay") -> "MirrorDelay":
        """Combine this interval with a later one."""
        return MirrorDelay(self.delays_ms + later.delays_ms, later.late_s, self.looped + later.looped)


@dataclass(frozen=True, slots=True)
class TracerAcks:
    """How many tracers a cluster was sent in one interval, and the latency of each acknowledged one."""

    sent: int = 0
    latencies_ms: tuple[int, ...] = ()

    def merge(self, later: "TracerAcks") -> "TracerAcks":
        """Combine this interval with a later one."""
        return TracerAcks(self.sent + later.sent, self.latencies_ms + later.latencies_ms)


@dataclass(slots=True)
class _RouteProgress:
    in_flight: dict[int, int] = field(default_factory=dict)
    """When each tracer beyond ``highest_sequence`` was produced, by its sequence."""
    highest_sequence: int = -1
    """The highest sequence seen in the destination."""
    last_delay_ms: int | None = None
    delays_ms: list[int] = field(default_factory=list)
    newest: tuple[int, int, int] | None = None
    """Sequence, destination offset and arrival time of the last tracer."""


@dataclass(slots=True)
class _SourceProgress:
    sent: int = 0
    latencies_ms: list[int] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    seen: dict[tuple[str, int], None] = field(default_factory=dict)
    looped: int = 0


class TracerDelays:
    """Accumulates the tracers of one run over all mirrors. Not thread-safe."""

    def __init__(self, run: str, routes: Iterable[MirrorRoute]) -> None:
        self._run = run
        self._routes = {route: _RouteProgress() for route in routes}
        self._sources = {route.source: _SourceProgress() for route in self._routes}

    def add_sent(self, tracer: Tracer) -> None:
        """Count a tracer that was sent to its source cluster."""
        self._sources[tracer.cluster].sent += 1

    def add_acknowledged(self, tracer: Tracer, offset: int, latency_ms: int) -> None:
        """Add a tracer that its source cluster acknowledged, at that offset."""
        source = self._sources[tracer.cluster]
        source.latencies_ms.append(latency_ms)
        _remember(source.offsets, tracer.sequence, offset)
        for route, progress in self._routes.items():
            is_awaited = (
                len(progress.in_flight) < _MAX_REMEMBERED and tracer.sequence > progress.highest_sequence
            )
            if route.source == tracer.cluster and is_awaited:
                progress.in_flight[tracer.sequence] = tracer.produced_ms

    def add_seen(self, tracer: Tracer, cluster: str, offset: int, at_ms: int) -> None:
        """Record the arrival of a tracer in a cluster, from which the delay of its mirror is measured."""
        if cluster == tracer.cluster:
            self._add_seen_at_source(tracer)
            return
        progress = self._routes.get(MirrorRoute(tracer.cluster, cluster))
        # A mirror that restarts replicates some tracers twice; only the first copy counts.
        if progress is None or tracer.run != self._run or tracer.sequence <= progress.highest_sequence:
            return
        progress.highest_sequence = tracer.sequence
        progress.last_delay_ms = max(0, at_ms - tracer.produced_ms)
        progress.delays_ms.append(progress.last_delay_ms)
        progress.newest = tracer.sequence, offset, at_ms

    def _add_seen_at_source(self, tracer: Tracer) -> None:
        """Detect loops: every run writes each tracer once, so a second one is a copy that came back."""
        source, key = self._sources.get(tracer.cluster), (tracer.run, tracer.sequence)
        if source is not None:
            source.looped += key in source.seen
            _remember(source.seen, key, None)

    def take_delays(self, now_ms: int) -> dict[MirrorRoute, MirrorDelay]:
        """Return the delay of each mirror since the previous call."""
        looped = {cluster: source.looped for cluster, source in self._sources.items()}
        for source in self._sources.values():
            source.looped = 0
        return {
            route: _take_delay(progress, looped[route.source], now_ms)
            for route, progress in self._routes.items()
        }

    def take_acks(self) -> dict[str, TracerAcks]:
        """Return the acknowledgements of each source cluster since the previous call."""
        acks = {}
        for cluster, source in self._sources.items():
            acks[cluster] = TracerAcks(source.sent, tuple(source.latencies_ms))
            source.sent, source.latencies_ms = 0, []
        return acks

    def take_mappings(self) -> tuple[TracerMapping, ...]:
        """Return the offsets of each mirror's last tracer, if one arrived since the previous call."""
        mappings = []
        for route, progress in self._routes.items():
            offsets = self._sources[route.source].offsets
            if progress.newest and progress.newest[0] in offsets:
                sequence, offset, at_ms = progress.newest
                mappings.append(TracerMapping(route, offsets[sequence], offset, at_ms))
                progress.newest = None
        return tuple(mappings)


def _take_delay(progress: _RouteProgress, looped: int, now_ms: int) -> MirrorDelay:
    progress.in_flight = {
        sequence: at_ms
        for sequence, at_ms in progress.in_flight.items()
        if sequence > progress.highest_sequence
    }
    late_ms = [now_ms - at_ms for at_ms in progress.in_flight.values()]
    late_ms += [] if progress.last_delay_ms is None else [progress.last_delay_ms]
    delays_ms, progress.delays_ms = tuple(progress.delays_ms), []
    return MirrorDelay(delays_ms, max(late_ms) / 1000 if late_ms else None, looped)


def _remember(values: dict[K, V], key: K, value: V) -> None:
    values[key] = value
    if len(values) > _MAX_REMEMBERED:
        del values[next(iter(values))]
