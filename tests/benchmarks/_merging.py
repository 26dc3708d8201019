"""Two sources merged into two aggregates, as looks at the four mirrors find them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from fleetgauge_operations.recovery.offsets.checkpoint import TopicIds
from fleetgauge_operations.recovery.offsets.mirror_maker import OffsetSync, decode_offset_sync
from fleetgauge_operations.recovery.offsets.sync_ingest import LogEnds, MirrorSnapshot, ObservedSync
from tests.unit.operations.recovery import wire

SOURCES = ("north", "south")
AGGREGATES = ("north-all", "south-all")
PARTITIONS = 10
#: Records of a source between two syncs, as MirrorMaker 2's `offset.lag.max`; syncs of a partition in a look.
EVERY, SYNCS = 100, 4
LOOK_EVERY_MS = 10_000
#: In every tenth partition one source writes nothing after the first half of all looks.
_IDLE = 10
_BEGIN_MS = 1_764_000_000_000

Place = tuple[str, int]


class Unread(NamedTuple):
    """A look whose syncs are still the records that MirrorMaker wrote."""

    source: str
    destination: str
    records: Sequence[tuple[bytes, bytes]]
    ids: dict[str, TopicIds]
    ends: dict[Place, LogEnds]
    at_ms: int

    def read(self) -> MirrorSnapshot:
        told = tuple(
            ObservedSync(sync, self.at_ms)
            for record in self.records
            if isinstance(sync := decode_offset_sync(*record), OffsetSync)
        )
        return MirrorSnapshot(self.source, self.destination, told, self.ids, self.ends, self.at_ms)


@dataclass
class Merged:
    """One partition of an aggregate. The source that falls silent has no record that is not copied yet."""

    place: Place
    silent: str | None
    end: int = 0
    copied: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))

    def go_on(self, random: Random, halfway: bool) -> dict[str, list[tuple[bytes, bytes]]]:
        """By source, what the mirrors tell: the very first record, and the last of every so many."""
        told: dict[str, list[tuple[bytes, bytes]]] = {source: [] for source in SOURCES}
        writing = [source for source in SOURCES if not (halfway and source == self.silent)]
        for source in random.sample(writing * SYNCS, len(writing) * SYNCS):
            if not self.copied[source]:
                told[source].append(wire.encode_offset_sync(*self.place, 0, self.end))
            self.end += EVERY
            self.copied[source] += EVERY
            told[source].append(wire.encode_offset_sync(*self.place, self.copied[source] - 1, self.end - 1))
        return told

    def ends(self, source: str) -> LogEnds:
        waiting = 0 if source == self.silent else EVERY // 2
        return LogEnds(self.end, self.copied[source] + waiting)


class Merging:
    """So many topics, of which the collector takes so many looks at each mirror."""

    def __init__(self, topics: int, looks: int) -> None:
        self._random = Random(1)
        self._looks = looks
        self.topics = [f"orders-{number}" for number in range(topics)]
        self.merged = {aggregate: self._partitions() for aggregate in AGGREGATES}

    @property
    def now_ms(self) -> int:
        """When the last look was taken."""
        return _BEGIN_MS + (self._looks - 1) * LOOK_EVERY_MS

    def _partitions(self) -> dict[Place, Merged]:
        places = [(topic, number) for topic in self.topics for number in range(PARTITIONS)]
        return {
            place: Merged(place, None if at % _IDLE else SOURCES[at // _IDLE % len(SOURCES)])
            for at, place in enumerate(places)
        }

    def looks(self) -> Iterator[list[Unread]]:
        """One list, of every mirror, after the other."""
        for number in range(self._looks):
            halfway, at_ms = 2 * number >= self._looks, _BEGIN_MS + number * LOOK_EVERY_MS
            yield [one for aggregate in AGGREGATES for one in self._of_aggregate(aggregate, halfway, at_ms)]

    def _of_aggregate(self, aggregate: str, halfway: bool, at_ms: int) -> Iterator[Unread]:
        merged = self.merged[aggregate]
        told = [one.go_on(self._random, halfway) for one in merged.values()]
        for source in SOURCES:
            records = [record for one in told for record in one[source]]
            ids = {topic: TopicIds(f"{source} {topic}", f"{aggregate} {topic}") for topic in self.topics}
            ends = {place: one.ends(source) for place, one in merged.items()}
            yield Unread(source, aggregate, records, ids, ends, at_ms)
