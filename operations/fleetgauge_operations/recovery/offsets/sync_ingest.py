"""What one look at a mirror says, added to what is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_maker import OffsetSync
from fleetgauge_operations.recovery.offsets.mirror_state import Fact, Known


@dataclass(frozen=True, slots=True)
class Told:
    """An offset sync, and when MirrorMaker wrote it, since 1970."""

    sync: OffsetSync
    at_ms: int


@dataclass(frozen=True, slots=True)
class Ends:
    """Of one partition, the next offset that will be written. The destination's was read first."""

    destination: int
    source: int


@dataclass(frozen=True, slots=True)
class MirrorLook:
    """A mirror at one moment. Topics are called as the source calls them.

    ``ids`` are from after ``told`` was read, and ``ends`` from after both: so a topic with the same ids as
    the last time was no other one in between.
    """

    source: str
    destination: str
    told: tuple[Told, ...]
    ids: Mapping[str, TopicIds]
    ends: Mapping[tuple[str, int], Ends]
    at_ms: int


def learned(known: Known, look: MirrorLook, watermark_every_ms: int = 0) -> tuple[Fact, ...]:
    """What is new of it, which ``known`` has then: all syncs, and a watermark so often at most."""
    known.look(look.source, look.destination, look.at_ms)
    told = tuple(_of_syncs(known, look))
    return tuple(fact for fact in (*told, *_of_ends(known, look, watermark_every_ms)) if fact)


def _of_syncs(known: Known, look: MirrorLook) -> Iterator[Fact | None]:
    by_route: dict[Route, list[Told]] = {}
    for told in look.told:
        route = Route(look.source, look.destination, told.sync.topic, told.sync.partition)
        by_route.setdefault(route, []).append(told)
    for route, told_of in by_route.items():
        ids, ends = look.ids.get(route.topic), look.ends.get((route.topic, route.partition))
        if ids is not None and ends is not None:
            for told in _of_this_topic(known, route, ids, told_of):
                # What lies beyond the end is of a log that was there before.
                if told.sync.upstream < ends.source and told.sync.downstream < ends.destination:
                    yield known.learn(route, ids, _sync(told, look.at_ms))


def _sync(told: Told, now_ms: int) -> Checkpoint:
    return Checkpoint(told.sync.upstream, told.sync.downstream, min(told.at_ms, now_ms), Origin.SYNC)


def _of_this_topic(known: Known, route: Route, ids: TopicIds, told: Sequence[Told]) -> Sequence[Told]:
    """A sync tells of no topic's id.

    Where that has changed since the last look, or just before, it may be of the old topic. Of a topic that is
    seen for the first time nobody knows whether there was another: what goes back is taken for that.
    """
    before = known.ids(route)
    if before is None:
        begins = [
            number
            for number in range(1, len(told))
            if told[number].sync.upstream <= told[number - 1].sync.upstream
        ]
        return told[begins[-1] :] if begins else told
    if before != ids:
        return ()
    return [one for one in told if not known.may_be_of_before(route, one.at_ms)]


def _of_ends(known: Known, look: MirrorLook, every_ms: int) -> Iterator[Fact | None]:
    """A fence, or where the source's last record is known to have arrived, a watermark."""
    for (topic, number), ends in look.ends.items():
        ids = look.ids.get(topic)
        if ids is None:
            continue
        route = Route(look.source, look.destination, topic, number)
        origin = Origin.FENCE
        if _all_arrived(known, route, ids, ends):
            origin = Origin.IDLE_WATERMARK
            known.keep_up(route, look.at_ms)
        if _is_due(known, route, ids, origin, look.at_ms - every_ms):
            yield known.learn(route, ids, Checkpoint(ends.source, ends.destination, look.at_ms, origin))


def _is_due(known: Known, route: Route, ids: TopicIds, origin: Origin, until_ms: int) -> bool:
    """A mirror that has just caught up is told of at once."""
    history = known.history(route)
    last = history.latest_watermark if history and history.ids == ids else None
    if last is None or last.observed_ms <= until_ms:
        return True
    return origin is Origin.IDLE_WATERMARK and last.origin is Origin.FENCE


def _all_arrived(known: Known, route: Route, ids: TopicIds, ends: Ends) -> bool:
    if ends.source == 0:
        return True
    history = known.history(route) if known.ids(route) == ids else None
    last = history.last_sync if history else None
    return last is not None and last.src_offset == ends.source - 1 and last.dst_offset < ends.destination
