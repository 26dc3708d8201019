"""A mirror's two ends and its offset syncs, as they are now."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from fleetgauge_core.fleet import Fleet, Mirror
from fleetgauge_core.kafka import (
    Extents,
    Place,
    TopicId,
    TopicReader,
)
from fleetgauge_operations.recovery.offsets.checkpoint import TopicIds
from fleetgauge_operations.recovery.offsets.mirror_maker import Refusal, offset_sync
from fleetgauge_operations.recovery.offsets.sync_ingest import Ends, MirrorLook, Told

_log = logging.getLogger("fleetgauge.recover")

CLIENT_ID = "fleetgauge-recover"
#: Syncs lie in one partition.
_PARTITION = 0
_SILENT_S = 2.0


class Progress(Protocol):
    """How far each topic of syncs was read, by whoever kept what it said."""

    def read_until(self, syncs: str) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """``read_until``: up to where its syncs are now read, by their topic; for who keeps what they say."""

    look: MirrorLook
    read_until: Mapping[str, int]


class MirrorEye:
    """Looks at one mirror, again and again: each sync is seen once. All raise KafkaUnavailableError."""

    def __init__(
        self,
        fleet: Fleet,
        mirror: Mirror,
        extents: Mapping[str, Extents],
        progress: Progress,
        now_ms: Callable[[], int],
    ) -> None:
        """``extents``: of every cluster, started by whoever made them."""
        self.mirror = mirror
        self._source, self._destination = extents[mirror.source], extents[mirror.destination]
        self._told_at = self._destination if mirror.syncs_at == "destination" else self._source
        self._syncs_access = fleet.cluster(mirror.syncs_cluster).access
        self._progress = progress
        self._now_ms = now_ms
        self._reading: tuple[str, TopicReader] | None = None
        self._next = 0
        self._unseen: list[Told] = []
        """Read, and not given away yet."""
        self._reached: dict[str, int] = {}
        """How far a topic of syncs was read before its reader was made again."""

    def stop(self) -> None:
        if self._reading:
            name, reader = self._reading
            self._reached[name] = self._next
            self._reading = None
            reader.stop()

    def look(self, names: Collection[str]) -> Seen:
        """``names``: of the source's topics, asked for before."""
        self._read_syncs()
        taken = [topic for topic in sorted(names) if self.mirror.takes(topic)]
        here, there = self._source.topics(taken), self._copies(taken)
        places = [Place(topic, number) for topic in taken for number in _in_both(topic, here, there)]
        # The order in which both are read is what makes a watermark of them.
        destination = self._destination.ends([self._there(place) for place in places])
        source = self._source.ends(places)
        ends: dict[tuple[str, int], Ends] = {
            place: Ends(destination[self._there(place)], source[place])
            for place in places
            if place in source and self._there(place) in destination
        }
        look = MirrorLook(
            source=self.mirror.source,
            destination=self.mirror.destination,
            told=tuple(one for one in self._unseen if _place(one) in ends),
            ids={
                topic: TopicIds(one.topic_id, there[topic].topic_id)
                for topic, one in here.items()
                if topic in there
            },
            ends=ends,
            at_ms=self._now_ms(),
        )
        # What is not there yet, or not to be seen now, may be at the next look; the last of it is enough.
        later = {_place(one): one for one in self._unseen if _place(one) not in ends}
        self._unseen = [one for place, one in later.items() if self.mirror.takes(place.topic)]
        return Seen(look, {self._reading[0]: self._next} if self._reading else {})

    def _there(self, place: Place) -> Place:
        return Place(self.mirror.called_there(place.topic), place.partition)

    def _copies(self, topics: list[str]) -> dict[str, TopicId]:
        """By what the source calls them."""
        names = {self.mirror.called_there(topic): topic for topic in topics}
        return {names[name]: one for name, one in self._destination.topics(names).items()}

    def _read_syncs(self) -> None:
        reader = self._reader()
        if reader is None:
            return
        end = reader.bounds([_PARTITION])[_PARTITION][1]
        while self._next < end:
            record = reader.poll(_SILENT_S)
            if record is None:
                topic = self.mirror.syncs_topic
                _log.warning(
                    "%s: read up to %d of %d: is there the right to read it?", topic, self._next, end
                )
                break
            self._next = record.offset + 1
            sync = offset_sync(record.key, record.value)
            if isinstance(sync, Refusal):
                topic = self.mirror.syncs_topic
                _log.warning("%s: record %d is no offset sync: %s", topic, record.offset, sync.detail)
            else:
                self._unseen.append(Told(sync, record.at_ms))

    def _reader(self) -> TopicReader | None:
        """None while nothing has been told. One that was made anew is read from its beginning."""
        topic = self.mirror.syncs_topic
        found = self._told_at.topics([topic]).get(topic)
        name = f"{self.mirror.syncs_cluster}/{topic}/{found.topic_id}" if found else None
        if self._reading and self._reading[0] == name:
            return self._reading[1]
        self.stop()
        if name is None:
            return None
        reader = TopicReader(self._syncs_access, topic, CLIENT_ID)
        reader.start()
        try:
            start, end = reader.bounds([_PARTITION])[_PARTITION]
            known = max(self._progress.read_until(name) or 0, self._reached.get(name, 0))
        except Exception:
            reader.stop()
            raise
        self._next = min(max(known, start), end)
        reader.add_from({_PARTITION: self._next})
        self._reading = name, reader
        return reader


def _place(told: Told) -> Place:
    return Place(told.sync.topic, told.sync.partition)


def _in_both(topic: str, here: Mapping[str, TopicId], there: Mapping[str, TopicId]) -> list[int]:
    """Partitions that have a copy."""
    if topic not in here or topic not in there:
        return []
    return sorted({*here[topic].partitions} & {*there[topic].partitions})
