"""Simulates two sources merged into two aggregates, as snapshots of the four mirrors."""

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
#: Records of a source between two syncs (`offset.lag.max`), and syncs of a partition per snapshot.
EVERY, SYNCS = 100, 4
SNAPSHOT_EVERY_MS = 10_000
#: In every tenth partition one source writes nothing after the first half of the snapshots.
_IDLE = 10
_BEGIN_MS = 1_764_000_000_000

PartitionKey = tuple[str, int]


class EncodedSnapshot(NamedTuple):
    """A snapshot of a mirror whose offset syncs are the records that MirrorMaker wrote."""

    source: str
    destination: str
    records: Sequence[tuple[bytes, bytes]]
    ids: dict[str, TopicIds]
    ends: dict[PartitionKey, LogEnds]
    at_ms: int

    def decode(self) -> MirrorSnapshot:
        syncs = tuple(
            ObservedSync(sync, self.at_ms)
            for record in self.records
            if isinstance(sync := decode_offset_sync(*record), OffsetSync)
        )
        return MirrorSnapshot(self.source, self.destination, syncs, self.ids, self.ends, self.at_ms)


@dataclass
class MergedPartition:
    """A partition of an aggregate. All records of the silent source have been copied."""

    key: PartitionKey
    silent: str | None
    end: int = 0
    copied: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))

    def advance(self, random: Random, halfway: bool) -> dict[str, list[tuple[bytes, bytes]]]:
        """Return the new offset sync records by source: of the first record, then of every ``EVERY``-th."""
        records: dict[str, list[tuple[bytes, bytes]]] = {source: [] for source in SOURCES}
        writing = [source for source in SOURCES if not (halfway and source == self.silent)]
        for source in random.sample(writing * SYNCS, len(writing) * SYNCS):
            if not self.copied[source]:
                records[source].append(wire.encode_offset_sync(*self.key, 0, self.end))
            self.end += EVERY
            self.copied[source] += EVERY
            records[source].append(wire.encode_offset_sync(*self.key, self.copied[source] - 1, self.end - 1))
        return records

    def ends(self, source: str) -> LogEnds:
        waiting = 0 if source == self.silent else EVERY // 2
        return LogEnds(self.end, self.copied[source] + waiting)


class MergingMirrors:
    """Mirrors of ``topics`` topics, of each of which the collector takes ``snapshots`` snapshots."""

    def __init__(self, topics: int, snapshots: int) -> None:
        self._random = Random(1)
        self._snapshots = snapshots
        self.topics = [f"orders-{number}" for number in range(topics)]
        self.merged = {aggregate: self._create_partitions() for aggregate in AGGREGATES}

    @property
    def now_ms(self) -> int:
        """The time of the last snapshots."""
        return _BEGIN_MS + (self._snapshots - 1) * SNAPSHOT_EVERY_MS

    def _create_partitions(self) -> dict[PartitionKey, MergedPartition]:
        keys = [(topic, number) for topic in self.topics for number in range(PARTITIONS)]
        return {
            key: MergedPartition(key, None if at % _IDLE else SOURCES[at // _IDLE % len(SOURCES)])
            for at, key in enumerate(keys)
        }

    def take_snapshots(self) -> Iterator[list[EncodedSnapshot]]:
        """Yield a list with a snapshot of every mirror for each point in time."""
        for number in range(self._snapshots):
            halfway, at_ms = 2 * number >= self._snapshots, _BEGIN_MS + number * SNAPSHOT_EVERY_MS
            yield [
                snapshot
                for aggregate in AGGREGATES
                for snapshot in self._advance_aggregate(aggregate, halfway, at_ms)
            ]

    def _advance_aggregate(self, aggregate: str, halfway: bool, at_ms: int) -> Iterator[EncodedSnapshot]:
        merged = self.merged[aggregate]
        new_records = [partition.advance(self._random, halfway) for partition in merged.values()]
        for source in SOURCES:
            records = [record for by_source in new_records for record in by_source[source]]
            ids = {topic: TopicIds(f"{source} {topic}", f"{aggregate} {topic}") for topic in self.topics}
            ends = {key: partition.ends(source) for key, partition in merged.items()}
            yield EncodedSnapshot(source, aggregate, records, ids, ends, at_ms)
