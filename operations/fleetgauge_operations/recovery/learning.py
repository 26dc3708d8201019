"""What one look at a mirror says, added to what is known."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleetgauge_operations.recovery.checkpoint import Checkpoint, Origin, Route, TopicIds
from fleetgauge_operations.recovery.known import Fact, Known
from fleetgauge_operations.recovery.mirror_maker import OffsetSync


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


def learned(known: Known, look: MirrorLook) -> tuple[Fact, ...]:
    """What is new of it, which ``known`` has then."""
    known.see(look.source, look.destination)
    return tuple(fact for fact in (*_of_syncs(known, look), *_of_ends(known, look)) if fact)


def _of_syncs(known: Known, look: MirrorLook) -> Iterator[Fact | None]:
    """A sync tells of no topic's id: where that has changed, those of this look may be of the old topic."""
    changed = {topic for topic, number in look.ends if _changed(known, look, topic, number)}
    for told in look.told:
        sync = told.sync
        ids, ends = look.ids.get(sync.topic), look.ends.get((sync.topic, sync.partition))
        if ids is None or ends is None or sync.topic in changed:
            continue
        # What lies beyond the end is of a log that was there before.
        if sync.upstream < ends.source and sync.downstream < ends.destination:
            route = Route(look.source, look.destination, sync.topic, sync.partition)
            row = Checkpoint(sync.upstream, sync.downstream, min(told.at_ms, look.at_ms), Origin.SYNC)
            yield known.learn(route, ids, row)


def _changed(known: Known, look: MirrorLook, topic: str, number: int) -> bool:
    before = known.ids(Route(look.source, look.destination, topic, number))
    return before is not None and before != look.ids.get(topic)


def _of_ends(known: Known, look: MirrorLook) -> Iterator[Fact | None]:
    """A fence, or where the source's last record is known to have arrived, a watermark."""
    for (topic, number), ends in look.ends.items():
        ids = look.ids.get(topic)
        if ids is not None:
            route = Route(look.source, look.destination, topic, number)
            origin = Origin.IDLE_WATERMARK if _all_arrived(known, route, ids, ends) else Origin.FENCE
            yield known.learn(route, ids, Checkpoint(ends.source, ends.destination, look.at_ms, origin))


def _all_arrived(known: Known, route: Route, ids: TopicIds, ends: Ends) -> bool:
    if ends.source == 0:
        return True
    history = known.history(route) if known.ids(route) == ids else None
    last = history.last_sync if history else None
    return last is not None and last.src_offset == ends.source - 1 and last.dst_offset < ends.destination
