"""Whether a group's position is written in the other cluster, and if not, why not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import Log, Route
from fleetgauge_operations.recovery.offsets.mapping import best
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.offsets.translation import translated


class Verdict(StrEnum):
    """By the name that scripts see. All but the first two are for a person, and nothing is written."""

    WRITE = "write"
    UNCHANGED = "unchanged"
    """It lies there already."""
    UNKNOWN_TOPIC = "unknown_topic"
    """No mirror brings that partition there, or not yet."""
    CONNECTED = "connected"
    """Somebody reads in the group there: its offsets are theirs."""
    MADE_ANEW = "made_anew"
    """A topic of that name was another one before, and nothing is known that holds for both."""
    STALE = "stale"
    """A mirror has neither copied anything for long, nor had nothing to copy."""
    UNBOUNDED = "unbounded"
    """Nothing is known of some source at or before the position: it may lie anywhere."""
    POSSIBLE_LOSS = "possible_loss"
    """What the group has not consumed may be gone there."""
    BACKWARDS = "backwards"
    """It lies further on there, and the group was not set back where it reads."""
    FAILED = "failed"
    """It was to be written, and does not lie there."""

    @property
    def is_fine(self) -> bool:
        return self in (Verdict.WRITE, Verdict.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Position:
    """``committed``: the offset that the group reads next of the active cluster's partition; ``end``: where
    that ends.
    """

    topic: str
    partition: int
    committed: int
    end: int


@dataclass(frozen=True, slots=True)
class Passive:
    """The same group in the other cluster, and the log of one partition there; ``log`` None: there is none.

    ``of``: the position to which ``committed`` was mapped, if we have written it.
    """

    topic: str
    partition: int
    log: Log | None
    connected: bool
    committed: int | None = None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """``early_at_most``: how many offsets ``resume`` lies at most before the first that is not consumed."""

    position: Position
    passive: Passive
    verdict: Verdict
    resume: int | None = None
    rule: str | None = None
    early_at_most: int | None = None
    silent_s: float | None = None
    """For how long nothing was learned of the mirror of which that is longest."""
    into_passive: tuple[Route, ...] = ()
    """What is copied there."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A cluster where groups read, and one where they are to go on."""

    active: str
    passive: str


@dataclass(frozen=True, slots=True)
class _Mapped:
    resume: int | None
    rule: str | None
    early_at_most: int | None = None
    possible_loss: bool = False


def topic_there(recovery: Recovery, pair: Pair, topic: str) -> str | None:
    """What an active cluster's topic is called in the passive one; None if no mirror brings it there."""
    direct = recovery.between(pair.active, pair.passive)
    if direct:
        return direct.called_there(topic) if direct.takes(topic) else None
    names = {
        mirror.called_there(origin.topic)
        for origin in _origins(recovery, pair.active, topic)
        if (mirror := recovery.between(origin.source, pair.passive)) and mirror.takes(origin.topic)
    }
    return names.pop() if len(names) == 1 else None


def decided(
    position: Position, passive: Passive, pair: Pair, recovery: Recovery, known: Known, now_ms: int
) -> Decision:
    """Of one partition. The first that speaks against writing is the verdict."""
    since_ms = now_ms - round(1000 * recovery.limits.stale_s)
    routes = _routes(position, passive, pair, recovery, known, since_ms)
    if passive.log is None or not routes:
        return Decision(position, passive, Verdict.UNKNOWN_TOPIC)
    mapped = _mapped(position.committed, passive.log, pair, recovery, known, routes)
    silent_s = _silent_s(routes, known, now_ms)
    return Decision(
        position,
        passive,
        _verdict(position, passive, mapped, routes, known, silent_s, recovery.limits.stale_s),
        mapped.resume,
        mapped.rule,
        mapped.early_at_most,
        silent_s,
        tuple(route for route in routes if route.destination == pair.passive),
    )


def _verdict(
    position: Position,
    passive: Passive,
    mapped: _Mapped,
    routes: Sequence[Route],
    known: Known,
    silent_s: float | None,
    stale_s: float,
) -> Verdict:
    if passive.connected:
        return Verdict.CONNECTED
    if mapped.resume is None:
        return Verdict.MADE_ANEW if any(map(known.was_made_anew, routes)) else Verdict.UNBOUNDED
    if silent_s is None or silent_s > stale_s:
        return Verdict.STALE
    if mapped.possible_loss:
        return Verdict.POSSIBLE_LOSS
    if passive.committed == mapped.resume:
        return Verdict.UNCHANGED
    set_back = passive.of is not None and position.committed < passive.of
    if passive.committed is not None and mapped.resume < passive.committed and not set_back:
        return Verdict.BACKWARDS
    return Verdict.WRITE


def _mapped(
    committed: int, log: Log, pair: Pair, recovery: Recovery, known: Known, routes: Sequence[Route]
) -> _Mapped:
    direct = recovery.between(pair.active, pair.passive) is not None
    histories = {route: known.history(route) for route in routes}
    found = {route: history for route, history in histories.items() if history}
    if len(found) < len(histories):
        return _Mapped(None, None)
    if direct:
        translation = translated(committed, found[routes[0]], log)
        return _Mapped(
            translation.resume, "translation", translation.early_at_most, translation.possible_loss
        )
    active, passive = (
        {route.source: history for route, history in found.items() if route.destination == cluster}
        for cluster in (pair.active, pair.passive)
    )
    answer = best(committed, active, passive, log)
    resume = None if answer.unbounded else answer.resume
    return _Mapped(resume, answer.rule.value, answer.early_at_most, answer.possible_loss)


class _Origin(NamedTuple):
    source: str
    topic: str


def _origins(recovery: Recovery, cluster: str, topic: str) -> Iterator[_Origin]:
    """Of which clusters' topics that cluster's topic is a copy, or would be if they had it."""
    for mirror in recovery.into(cluster):
        name = mirror.called_here(topic)
        if name is not None:
            yield _Origin(mirror.source, name)


def _routes(
    position: Position, passive: Passive, pair: Pair, recovery: Recovery, known: Known, since_ms: int
) -> tuple[Route, ...]:
    """All that has to be known. A source of which looks since then said that it has no such topic is none."""
    if recovery.between(pair.active, pair.passive):
        return (Route(pair.active, pair.passive, position.topic, position.partition),)
    origins = {
        *_origins(recovery, pair.active, position.topic),
        *_origins(recovery, pair.passive, passive.topic),
    }
    found = (
        [Route(source, cluster, topic, position.partition) for cluster in (pair.active, pair.passive)]
        for source, topic in sorted(origins)
    )
    return tuple(
        route
        for both in found
        if not all(_is_nothing(known, one, since_ms) for one in both)
        for route in both
    )


def _is_nothing(known: Known, route: Route, since_ms: int) -> bool:
    looked_ms = known.looked_ms(route.source, route.destination)
    return known.history(route) is None and looked_ms is not None and looked_ms >= since_ms


def _silent_s(routes: Sequence[Route], known: Known, now_ms: int) -> float | None:
    last = [known.kept_up_ms(route) for route in routes]
    heard = [one for one in last if one is not None]
    return (now_ms - min(heard)) / 1000 if heard and len(heard) == len(last) else None
