"""The topics of a stream: a new generation for a topic that was recreated, and the records that were lost."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import (
    KafkaUnavailableError,
    TopicOffsets,
    keep_changes_topic,
    keep_telemetry_topics,
)
from fleetgauge_core.metadata import (
    LogBounds,
    OffsetGap,
    PresentTopic,
    TopicChange,
    TopicChangeKind,
    TopicPartition,
    TopicSnapshot,
    find_topic_changes,
)
from fleetgauge_pipelines.io.record_topics import find_missing_offsets
from fleetgauge_pipelines.io.stream_checkpoint import (
    BatchOffsets,
    StreamCheckpoint,
    StreamGeneration,
    TopicOffsetMap,
)

_log = logging.getLogger("fleetgauge.stream")

_CLIENT_ID = "fleetgauge-stream"
_LOOK_INTERVAL_S = 5.0
#: A batch has just read from the cluster, so it answers again soon.
_LOOK_TIMEOUT_S = 60.0
_RETRY_S = 1.0
#: The ID of a topic of which an older version stored no ID, and which is not the one it read.
_UNKNOWN_ID = "unknown"


Result = TypeVar("Result")


class TopicsChangedError(Exception):
    """A topic was recreated while a batch read it; a new generation has to begin."""


class StreamChange(NamedTuple):
    """A change of one of the stream's topics, found at the start of a generation or in a batch.

    ``label`` is the same whenever the same change is found.
    """

    label: str
    topic: str
    change: TopicChange


class ReadOffsets(NamedTuple):
    """The first offset of a partition that a batch read, and how many it read."""

    first: int
    records: int


@dataclass(frozen=True, slots=True)
class OpenedGeneration:
    """The generation to read now, and the changes that made it necessary; it is not stored yet if new.

    ``is_interrupted``: the previous generation ended within a batch, whose records may be gone.
    """

    generation: StreamGeneration
    changes: tuple[StreamChange, ...] = ()
    is_new: bool = False
    is_interrupted: bool = False


class StreamTopics:
    """Looks at the topics of a stream; all methods are called by one thread at a time."""

    def __init__(self, telemetry: Telemetry, checkpoint: StreamCheckpoint) -> None:
        names = telemetry.topics
        self._names = (names.probe_minutes.name, names.health_events.name, names.changes.name)
        self._checkpoint = checkpoint
        self._keepers = (keep_telemetry_topics(telemetry), keep_changes_topic(telemetry))
        self._offsets = TopicOffsets(telemetry.access, _CLIENT_ID)
        self._ends: dict[str, dict[int, int]] = {}
        self._next_look_s = 0.0

    def start(self) -> None:
        """Create the client, and topics that are missing. Raises: KafkaUnavailableError."""
        self._offsets.start()
        self._ensure_topics()

    def open_generation(self) -> OpenedGeneration:
        """Return the generation that reads the present topics; create those that are missing.

        Raises: KafkaUnavailableError.
        """
        present = _retry_look(self._create_and_describe)
        stored = self._checkpoint.read_generation()
        if self._checkpoint.must_begin_anew(stored):
            _log.warning(
                "the stream's checkpoints are gone or damaged: it reads the topics again from their beginning"
            )
            # Its batches must not have the names of earlier ones.
            anew = StreamGeneration(self._checkpoint.find_next_number(), _ids(present))
            return OpenedGeneration(anew, is_new=True, is_interrupted=True)
        generation = stored or StreamGeneration(0, _ids(present))
        positions = self._checkpoint.read_positions(generation)
        damage = self._checkpoint.find_damage(generation)
        if stored is None:
            generation = _doubt_topics(generation, positions, present)
        opened = plan_generation(generation, positions, self._ends, present)
        if opened is None and damage:
            again = StreamGeneration(generation.number + 1, generation.topic_ids, positions)
            opened = OpenedGeneration(complete_starts(again, present), is_new=True)
        if opened is None:
            return OpenedGeneration(complete_starts(generation, present), is_new=stored is None)
        if damage:
            _log.warning("%s: the stream reads again from the last batch that is whole", damage)
        is_interrupted = damage is not None or self._checkpoint.has_incomplete_batch(generation)
        return replace(opened, is_interrupted=is_interrupted)

    def is_outdated(self, generation: StreamGeneration) -> bool:
        """Return whether a topic was deleted or recreated. For use while no batch runs.

        The cluster is asked every 5 s. It may be unavailable, and then nothing has changed.
        """
        if time.monotonic() < self._next_look_s:
            return False
        self._next_look_s = time.monotonic() + _LOOK_INTERVAL_S
        if self.has_changed(generation):
            return True
        with suppress(KafkaUnavailableError):
            # What was written until now is lost if a topic is deleted next.
            ends = {
                name: {partition: bounds.end for partition, bounds in topic.bounds.items()}
                for name, topic in self._describe().items()
                if topic.topic_id == generation.topic_ids[name]
            }
            self._ends = self._ends | ends
        return False

    def has_changed(self, generation: StreamGeneration) -> bool:
        """Return whether a topic was deleted or recreated; False if the cluster is unavailable."""
        try:
            topics = self._offsets.describe_topics(self._names)
        except KafkaUnavailableError:
            return False
        return {name: topic.topic_id for name, topic in topics.items()} != generation.topic_ids

    def has_more_partitions(self, generation: StreamGeneration) -> bool:
        """Return whether partitions were added since a generation was opened; False if it is unknown.

        A query fails of them if they were added before it noted its first offsets.
        """
        try:
            present = self._describe()
        except KafkaUnavailableError:
            return False
        return complete_starts(generation, present) != generation

    def check_batch(
        self, generation: StreamGeneration, batch_id: int, rows: DataFrame
    ) -> tuple[StreamChange, ...]:
        """Compare what a batch has read with what it was to read, and return which records were lost.

        Raises: TopicsChangedError if a row may be of another topic than the generation's.
        """
        aggregated = rows.groupBy("topic", "partition").agg(
            F.min("offset").alias("first"), F.count("offset").alias("records")
        )
        read = {
            TopicPartition(row["topic"], row["partition"]): ReadOffsets(row["first"], row["records"])
            for row in aggregated.collect()
        }
        # After the rows were read: an ID that is still the same was the same all the time.
        if self._read_ids() != generation.topic_ids:
            raise TopicsChangedError
        planned = self._checkpoint.read_batch(generation, batch_id)
        label = f"{generation.name}/{batch_id}"

        def list_offsets(partition: TopicPartition) -> list[int]:
            is_in_partition = (F.col("topic") == partition.topic) & (
                F.col("partition") == partition.partition
            )
            return [row["offset"] for row in rows.where(is_in_partition).select("offset").collect()]

        return tuple(
            StreamChange(label, topic, change)
            for topic, topic_id in generation.topic_ids.items()
            for change in find_batch_changes(topic, topic_id, planned, read, list_offsets)
        )

    def _read_ids(self) -> dict[str, str]:
        topics = _retry_look(lambda: self._offsets.describe_topics(self._names))
        return {name: topic.topic_id for name, topic in topics.items()}

    def _create_and_describe(self) -> dict[str, PresentTopic]:
        """Return all topics. Raises: KafkaUnavailableError unless all exist and have leaders."""
        # A topic that is being deleted can only be created afterwards.
        self._ensure_topics()
        present = self._describe()
        if unreadable := find_unreadable_topics(self._names, present):
            raise KafkaUnavailableError("; ".join(unreadable))
        return present

    def _ensure_topics(self) -> None:
        for keeper in self._keepers:
            keeper.ensure()

    def _describe(self) -> dict[str, PresentTopic]:
        """Return the existing topics with the bounds of all partitions. Raises: KafkaUnavailableError."""
        topics = self._offsets.describe_topics(self._names)
        partitions = [
            TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions
        ]
        starts, ends = (
            self._offsets.read_start_offsets(partitions),
            self._offsets.read_end_offsets(partitions),
        )
        return {
            name: PresentTopic(
                topic.topic_id,
                frozenset(topic.partitions + topic.leaderless),
                {
                    number: LogBounds(starts[partition], ends[partition])
                    for number in topic.partitions
                    if (partition := TopicPartition(name, number)) in starts and partition in ends
                },
            )
            for name, topic in topics.items()
        }


def _retry_look(look: Callable[[], Result]) -> Result:
    """Repeat a look at the topics until it succeeds. Raises: KafkaUnavailableError after a minute.

    A shutdown waits for it, as for a batch: the deadline of processes that write the lake is longer.
    """
    deadline_s = time.monotonic() + _LOOK_TIMEOUT_S
    while True:
        try:
            return look()
        except KafkaUnavailableError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)


def plan_generation(
    generation: StreamGeneration,
    positions: TopicOffsetMap,
    ends: TopicOffsetMap,
    present: Mapping[str, PresentTopic],
) -> OpenedGeneration | None:
    """Return the generation that follows if a topic was recreated, else None.

    A new topic is read from its beginning, and the others from where the last complete batch left them.
    """
    number = generation.number + 1
    known = {
        name: TopicSnapshot(
            generation.topic_ids.get(name),
            frozenset(positions.get(name, {})),
            positions.get(name, {}),
            ends.get(name, {}),
        )
        for name in present
    }
    changes_by_topic = {name: find_topic_changes(known[name], topic) for name, topic in present.items()}
    recreated = {
        name: change
        for name, changes in changes_by_topic.items()
        for change in changes
        if change.kind is TopicChangeKind.RECREATED
    }
    if not recreated:
        return None
    # A topic of which nothing was known is another one that the fleet file names now. Records that expired
    # are found by the first batch.
    stored = (
        StreamChange(f"stream-{number}/start", name, change)
        for name, changes in changes_by_topic.items()
        for change in changes
        if known[name].topic_id is not None
        and change.kind in (TopicChangeKind.RECREATED, TopicChangeKind.TRUNCATED)
    )
    starts = {
        name: {
            partition: _resume(
                partition, recreated[name].resume if name in recreated else positions.get(name, {}), topic
            )
            for partition in sorted(topic.partitions)
        }
        for name, topic in present.items()
    }
    return OpenedGeneration(StreamGeneration(number, _ids(present), starts), tuple(stored), is_new=True)


def complete_starts(generation: StreamGeneration, present: Mapping[str, PresentTopic]) -> StreamGeneration:
    """Return the generation with a start at 0 of every partition that was added since it was planned.

    Spark begins a query only if it is given the start of every partition.
    """
    starts = {
        topic: dict.fromkeys(sorted(present[topic].partitions), 0) | dict(offsets)
        for topic, offsets in generation.starts.items()
        if topic in present
    }
    return replace(generation, starts=starts)


def find_unreadable_topics(names: Iterable[str], present: Mapping[str, PresentTopic]) -> list[str]:
    """Return in words which topics do not exist, and which partitions have no leader."""
    return [f"no such topic: {name}" for name in sorted(set(names) - present.keys())] + [
        f"no leader: partition {partition} of {name}"
        for name, topic in sorted(present.items())
        for partition in sorted(topic.partitions - topic.bounds.keys())
    ]


def _resume(partition: int, positions: Mapping[int, int], topic: PresentTopic) -> int:
    position = positions.get(partition, 0)
    bounds = topic.bounds.get(partition)
    return min(position, bounds.end) if bounds else position


def find_batch_changes(
    topic: str,
    topic_id: str,
    planned: BatchOffsets,
    read: Mapping[TopicPartition, ReadOffsets],
    list_offsets: Callable[[TopicPartition], Iterable[int]],
) -> list[TopicChange]:
    """Return by which changes of a topic a batch has not read all that it was to read.

    ``list_offsets`` returns all offsets of a partition that the batch read; they are rarely needed.
    """
    lost: list[OffsetGap] = []
    truncated: dict[int, int] = {}
    for partition, end in sorted(planned.ends.get(topic, {}).items()):
        batch_read = read.get(topic_partition := TopicPartition(topic, partition))
        # The first batch of all starts wherever the log began then. A partition that was added begins at 0.
        first_start = batch_read.first if batch_read and not planned.starts else 0
        start = planned.starts.get(topic, {}).get(partition, first_start)
        if end < start:
            truncated[partition] = end
        elif (batch_read.records if batch_read else 0) < end - start and (batch_read or planned.starts):
            lost += _list_missing(topic_partition, start, end, batch_read, list_offsets)
    changes = []
    if lost:
        changes.append(TopicChange(TopicChangeKind.EXPIRED, topic_id, lost=tuple(lost)))
    if truncated:
        changes.append(TopicChange(TopicChangeKind.TRUNCATED, topic_id, truncated, is_exact=False))
    return changes


def _list_missing(
    topic_partition: TopicPartition,
    start: int,
    end: int,
    batch_read: ReadOffsets | None,
    list_offsets: Callable[[TopicPartition], Iterable[int]],
) -> list[OffsetGap]:
    partition = topic_partition.partition
    if batch_read is None:
        return [OffsetGap(partition, start, end)]
    if batch_read.records == end - batch_read.first:
        return [OffsetGap(partition, start, batch_read.first)]
    return find_missing_offsets(partition, start, end, list_offsets(topic_partition))


def _doubt_topics(
    generation: StreamGeneration, positions: TopicOffsetMap, present: Mapping[str, PresentTopic]
) -> StreamGeneration:
    """Return the first generation, without the ID of a topic that ends before what was read of it.

    An older version read it, and stored no IDs: it is not known whether it is the same topic.
    """
    ids = {
        name: _UNKNOWN_ID
        if any(
            bounds.end < positions.get(name, {}).get(partition, 0)
            for partition, bounds in topic.bounds.items()
        )
        else topic.topic_id
        for name, topic in present.items()
    }
    return StreamGeneration(generation.number, ids, generation.starts)


def _ids(topics: Mapping[str, PresentTopic]) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in topics.items()}


def describe_spans(spans: Sequence[OffsetGap]) -> dict[str, list[str]]:
    """Return the spans as text, by partition."""
    described: dict[str, list[str]] = {}
    for span in spans:
        described.setdefault(str(span.partition), []).append(f"{span.start}-{span.end - 1}")
    return described
