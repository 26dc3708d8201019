"""What tracers tell: how long a mirror takes, how long the oldest has been under way, and which came back.

A mirror keeps a partition's order: what it has not brought when a later one is there, it will not bring, or
nobody was looking yet when it did.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

#: An hour of tracers, one a second, and more.
_REMEMBERED = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Way(NamedTuple):
    """A mirror."""

    source: str
    destination: str


class Pairing(NamedTuple):
    """A tracer's offset at the source, and there."""

    way: Way
    src_offset: int
    dst_offset: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Of one mirror in one stretch of time. ``took_ms``: of each tracer that came.

    ``late_s``: what is produced now is there after so long, as far as tracers tell: what the one took that
    came last, or for how long the oldest has been under way that has not come. None: no tracer says.
    """

    took_ms: tuple[int, ...] = ()
    late_s: float | None = None
    looped: int = 0
    """How many of its source's tracers came back to it."""

    def then(self, later: "Delay") -> "Delay":
        """Both stretches together."""
        return Delay(self.took_ms + later.took_ms, later.late_s, self.looped + later.looped)


@dataclass(frozen=True, slots=True)
class Acks:
    """What became of a cluster's tracers in one stretch of time. ``took_ms``: of those acknowledged."""

    sent: int = 0
    took_ms: tuple[int, ...] = ()

    def then(self, later: "Acks") -> "Acks":
        """Both stretches together."""
        return Acks(self.sent + later.sent, self.took_ms + later.took_ms)


@dataclass(slots=True)
class _Route:
    under_way: dict[int, int] = field(default_factory=dict)
    """When each was produced that its source has; those up to the furthest no longer are."""
    furthest: int = -1
    """The highest sequence that was seen there."""
    last_ms: int | None = None
    took_ms: list[int] = field(default_factory=list)
    newest: tuple[int, int, int] | None = None
    """The sequence, the offset there and the time of the one that came last."""


@dataclass(slots=True)
class _Home:
    sent: int = 0
    ack_ms: list[int] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    seen: dict[tuple[str, int], None] = field(default_factory=dict)
    looped: int = 0


class Delays:
    """Of all mirrors, by the tracers of one run; not for several threads at once."""

    def __init__(self, run: str, ways: Iterable[Way]) -> None:
        self._run = run
        self._routes = {way: _Route() for way in ways}
        self._homes = {way.source: _Home() for way in self._routes}

    def sent(self, tracer: Tracer) -> None:
        self._homes[tracer.cluster].sent += 1

    def acknowledged(self, tracer: Tracer, offset: int, took_ms: int) -> None:
        """Its own cluster has it."""
        home = self._homes[tracer.cluster]
        home.ack_ms.append(took_ms)
        _remember(home.offsets, tracer.sequence, offset)
        for way, route in self._routes.items():
            waits = len(route.under_way) < _REMEMBERED and tracer.sequence > route.furthest
            if way.source == tracer.cluster and waits:
                route.under_way[tracer.sequence] = tracer.produced_ms

    def seen(self, tracer: Tracer, cluster: str, offset: int, at_ms: int) -> None:
        """It lies in that cluster, in the topic that it is called there."""
        if cluster == tracer.cluster:
            self._seen_at_home(tracer)
            return
        route = self._routes.get(Way(tracer.cluster, cluster))
        # A mirror that begins again copies some twice.
        if route is None or tracer.run != self._run or tracer.sequence <= route.furthest:
            return
        route.furthest = tracer.sequence
        route.last_ms = max(0, at_ms - tracer.produced_ms)
        route.took_ms.append(route.last_ms)
        route.newest = tracer.sequence, offset, at_ms

    def _seen_at_home(self, tracer: Tracer) -> None:
        """Each is written once, by whichever run: a second one is a copy that has come back."""
        home, key = self._homes.get(tracer.cluster), (tracer.run, tracer.sequence)
        if home is not None:
            home.looped += key in home.seen
            _remember(home.seen, key, None)

    def delays(self, now_ms: int) -> dict[Way, Delay]:
        """Since the last call."""
        looped = {cluster: home.looped for cluster, home in self._homes.items()}
        for home in self._homes.values():
            home.looped = 0
        return {way: _delay(route, looped[way.source], now_ms) for way, route in self._routes.items()}

    def acks(self) -> dict[str, Acks]:
        """By cluster, since the last call."""
        found = {}
        for cluster, home in self._homes.items():
            found[cluster] = Acks(home.sent, tuple(home.ack_ms))
            home.sent, home.ack_ms = 0, []
        return found

    def pairings(self) -> tuple[Pairing, ...]:
        """Of each mirror the one that came last, if any came since the last call."""
        found = []
        for way, route in self._routes.items():
            if route.newest and route.newest[0] in self._homes[way.source].offsets:
                sequence, offset, at_ms = route.newest
                found.append(Pairing(way, self._homes[way.source].offsets[sequence], offset, at_ms))
                route.newest = None
        return tuple(found)


def _delay(route: _Route, looped: int, now_ms: int) -> Delay:
    route.under_way = {n: at_ms for n, at_ms in route.under_way.items() if n > route.furthest}
    late = [now_ms - at_ms for at_ms in route.under_way.values()]
    late += [] if route.last_ms is None else [route.last_ms]
    took_ms, route.took_ms = tuple(route.took_ms), []
    return Delay(took_ms, max(late) / 1000 if late else None, looped)


def _remember(what: dict[K, V], key: K, value: V) -> None:
    what[key] = value
    if len(what) > _REMEMBERED:
        del what[next(iter(what))]
