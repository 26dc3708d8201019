"""The checkpoint of Spark's streaming query, and which topics its offsets belong to.

Motivation: Spark's checkpoint has offsets by a topic's name, and a topic that was deleted and created again
has the same name. Spark then reads on at an offset of the old topic, and skips the records before it.

Approach: every checkpoint belongs to one *generation*, in which no topic is replaced. A small table beside
the checkpoints has the IDs of a generation's topics, and the offsets from which it reads. When a topic was
recreated, a new generation begins with a new checkpoint. Its rows are one commit, so a process that ends
between any two steps either begins the same generation again or goes on with it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from fleetgauge_core.tables import Column, ColumnType, Table
from fleetgauge_pipelines.io.lake import Lake

#: Offsets by topic and partition.
TopicOffsetMap = Mapping[str, Mapping[int, int]]

_GENERATIONS = Table(
    path="_checkpoints/stream_topics",
    key=("generation", "topic"),
    columns=(
        Column("generation", ColumnType.INT),
        Column("topic", ColumnType.STRING),
        Column("topic_id", ColumnType.STRING),
        # By partition, as JSON; NULL if the generation reads the topic from its beginning.
        Column("starts", ColumnType.STRING),
        Column("at", ColumnType.TIMESTAMP),
    ),
)


@dataclass(frozen=True, slots=True)
class StreamGeneration:
    """The topics of one checkpoint by name, with their IDs, and the offsets from which it reads them.

    The first generation has no ``starts``: it reads every topic from its beginning.
    """

    number: int
    topic_ids: Mapping[str, str]
    starts: TopicOffsetMap = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the checkpoint, and the beginning of the names of its batches."""
        return f"stream-{self.number}" if self.number else "stream"


class BatchOffsets(NamedTuple):
    """The offsets that a batch was to read: from ``starts`` (included) to ``ends`` (not included)."""

    starts: TopicOffsetMap
    ends: TopicOffsetMap


class StreamCheckpoint:
    """Reads the checkpoints of a lake's stream, and stores their generations."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake

    def location(self, generation: StreamGeneration) -> str:
        """Return the location of a generation's checkpoint."""
        return self._lake.checkpoint(generation.name)

    def open(self) -> None:
        """Create the table of generations if it is missing."""
        self._lake.create(_GENERATIONS)

    def read_generation(self) -> StreamGeneration | None:
        """Return the latest generation; None if there is none, or an older version wrote the checkpoint."""
        rows = self._lake.table_store(_GENERATIONS).rows()
        if not rows:
            return None
        number = max(row["generation"] for row in rows)
        rows = [row for row in rows if row["generation"] == number]
        starts = {row["topic"]: _parse_offsets(row["starts"]) for row in rows if row["starts"]}
        return StreamGeneration(number, {row["topic"]: row["topic_id"] for row in rows}, starts)

    def save_generation(self, generation: StreamGeneration, now: datetime) -> None:
        """Store a generation; its checkpoint is created by the query that starts next."""
        self._lake.table_store(_GENERATIONS).append(
            [
                {
                    "generation": generation.number,
                    "topic": topic,
                    "topic_id": topic_id,
                    "starts": json.dumps(generation.starts[topic]) if topic in generation.starts else None,
                    "at": now,
                }
                for topic, topic_id in generation.topic_ids.items()
            ]
        )

    def read_positions(self, generation: StreamGeneration) -> TopicOffsetMap:
        """Return the next offsets to read: after the last complete batch, or where the generation starts."""
        batches = self._list_batches(f"{self.location(generation)}/commits")
        if not batches:
            return generation.starts
        return self._read_ends(generation, max(batches))

    def has_incomplete_batch(self, generation: StreamGeneration) -> bool:
        """Return whether a batch was begun and is not complete."""
        begun, complete = (
            self._list_batches(f"{self.location(generation)}/{folder}") for folder in ("offsets", "commits")
        )
        return max(begun, default=-1) > max(complete, default=-1)

    def read_batch(self, generation: StreamGeneration, batch_id: int) -> BatchOffsets:
        """Return the offsets that a running batch was to read."""
        starts = self._read_ends(generation, batch_id - 1) if batch_id else generation.starts
        return BatchOffsets(starts, self._read_ends(generation, batch_id))

    def _read_ends(self, generation: StreamGeneration, batch_id: int) -> TopicOffsetMap:
        # A version, the batch's metadata, and then a line for each source; the stream has one source.
        lines = self._read_text(f"{self.location(generation)}/offsets/{batch_id}").splitlines()
        offsets: dict[str, dict[str, int]] = json.loads(lines[2])
        return {topic: _to_numbers(partitions) for topic, partitions in offsets.items()}

    def _read_text(self, path: str) -> str:
        files, java_path = self._open(path)
        stream = files.open(java_path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _list_batches(self, folder: str) -> list[int]:
        files, java_path = self._open(folder)
        if not files.exists(java_path):
            return []
        names = [status.getPath().getName() for status in files.listStatus(java_path)]
        return [int(name) for name in names if name.isdecimal()]

    def _open(self, path: str) -> tuple[Any, Any]:
        """Return the file system of a path, which may be an object store, and the path for it."""
        java_path = self._jvm.org.apache.hadoop.fs.Path(path)
        return java_path.getFileSystem(self._spark._jsc.hadoopConfiguration()), java_path

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm


def _parse_offsets(text: str) -> dict[int, int]:
    return _to_numbers(json.loads(text))


def _to_numbers(partitions: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in partitions.items()}
