"""The checkpoint of Spark's streaming query, and which topics its offsets belong to.

Motivation: Spark's checkpoint has offsets by a topic's name, and a topic that was deleted and created again
has the same name. Spark then reads on at an offset of the old topic, and skips the records before it.

Approach: every checkpoint belongs to one *generation*, in which no topic is replaced. A small table beside
the checkpoints has the IDs of a generation's topics, and the offsets from which it reads. When a topic was
recreated, a new generation begins with a new checkpoint. Its rows are one commit, so a process that ends
between any two steps either begins the same generation again or goes on with it.

A file of a checkpoint that was emptied or cut by a power failure ends Spark's query on every start. Then a
new generation begins after the last batch whose files are whole: records that are read again are recognised.
When rows of the table are lost, nobody knows which topics a checkpoint is of: a new generation reads all
topics from their beginning. It is known by a checkpoint, or batches, of a generation that is not stored.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fleetgauge_core.lake.table_repair import RepairOutcome
from fleetgauge_core.lake.table_store import TableRow
from fleetgauge_core.tables import QUALITY, Column, ColumnType, Table
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


#: The names of batches; "stream-1/start", of what was found before the first one, is none of them.
_GENERATION_OF_BATCH = re.compile(r"stream(?:-(\d+))?/\d+")
_CHECKPOINT_FOLDER = re.compile(r"stream(?:-(\d+))?")


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
        self._has_lost_rows = False

    def location(self, generation: StreamGeneration) -> str:
        """Return the location of a generation's checkpoint."""
        return self._lake.checkpoint(generation.name)

    def open(self) -> None:
        """Create the table of generations if it is missing, and drop what is damaged of it."""
        self._has_lost_rows = self._lake.repair(_GENERATIONS) is RepairOutcome.LOST
        self._lake.table_store(_GENERATIONS).create()

    def read_generation(self) -> StreamGeneration | None:
        """Return the latest generation; None if there is none, or an older version wrote the checkpoint.

        A row that a flipped bit made unusable is none: its topic is one that was not known.
        """
        usable = [row for row in self._lake.table_store(_GENERATIONS).rows() if _is_usable(row)]
        if not usable:
            return None
        number = max(row["generation"] for row in usable)
        latest = [row for row in usable if row["generation"] == number]
        starts = {row["topic"]: _parse_offsets(row["starts"]) for row in latest if row["starts"]}
        return StreamGeneration(number, {row["topic"]: row["topic_id"] for row in latest}, starts)

    def must_begin_anew(self, stored: StreamGeneration | None) -> bool:
        """Return whether checkpoints are gone, or rows of the table, so that no position can be trusted."""
        if self._has_lost_rows:
            return True
        begun = self._find_newest_begun()
        if stored is None and begun == 0:
            # An older version read it, which stored no generations, unless some were stored once.
            return bool(self._lake.table_store(_GENERATIONS).version)
        return max(begun, self._find_newest_recorded()) > (stored.number if stored else -1)

    def find_next_number(self) -> int:
        """Return the number of a generation that was never stored or begun, and has no batches."""
        stored = self.read_generation()
        newest = stored.number if stored else -1
        return max(newest, self._find_newest_begun(), self._find_newest_recorded()) + 1

    def reads_topic(self, topic_id: str | None) -> bool:
        """Return whether a stream reads the topic with this ID. For use without ``open``."""
        if not self._lake.table_store(_GENERATIONS).exists:
            return False
        generation = self.read_generation()
        return generation is not None and topic_id in generation.topic_ids.values()

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
        # Whatever was lost before, this generation is known.
        self._has_lost_rows = False

    def begin_again(self, now: datetime) -> bool:
        """Let the stream read all records again that its topics hold; return whether there is a stream."""
        generation, number = self.read_generation(), self.find_next_number()
        if generation is None and number == 0:
            return False
        # Without what is known of a topic, the stream reads it from its beginning.
        topic_ids = generation.topic_ids if generation else {"": ""}
        self.save_generation(StreamGeneration(number, topic_ids), now)
        return True

    def _find_newest_recorded(self) -> int:
        """Return the highest generation whose batches are recorded in ops/quality; -1 if there is none."""
        batches = (row["batch"] for row in self._lake.table_store(QUALITY).rows(columns=["batch"]))
        numbers = (_GENERATION_OF_BATCH.match(batch) for batch in batches)
        return max((int(match[1] or 0) for match in numbers if match), default=-1)

    def find_damage(self, generation: StreamGeneration) -> str | None:
        """Return which file the generation's query could not go on with, and why; None if all are whole.

        A query reads its metadata and first offsets, the offsets of two batches, and the last commit.
        """
        location = self.location(generation)
        if not self.has_begun(generation) and self._find_newest_recorded() == generation.number:
            return f"{location} is gone"
        begun, complete = (self._list_batches(f"{location}/{folder}") for folder in ("offsets", "commits"))
        newest = max(begun, default=-1)
        if complete and max(complete) > newest:
            return f"{location}/offsets has no file {max(complete)}, of a complete batch"
        for folder in ("offsets", "commits"):
            # Spark could not write the file again: its checksum file is in the way.
            if lost := self._list_lost_batches(f"{location}/{folder}"):
                return f"{location}/{folder}/{max(lost)} is missing"
        needed = [
            ("metadata", 1, False),
            ("sources/0/0", 2, False),
            *((f"offsets/{number}", 3, True) for number in (newest - 1, newest) if number >= 0),
            *((f"commits/{number}", 2, True) for number in [max(complete, default=-1)] if number >= 0),
        ]
        for file, lines, must_exist in needed:
            if problem := self._find_problem(f"{location}/{file}", lines, must_exist):
                return f"{location}/{file} {problem}"
        return None

    def _find_problem(self, path: str, lines: int, must_exist: bool) -> str | None:
        """Return what is wrong with a file whose last of so many lines is JSON."""
        files, java_path = self._open(path)
        if not files.exists(java_path):
            return "is missing" if must_exist else None
        try:
            text = self._read_text(path)
            json.loads(text.split("\n", lines - 1)[lines - 1])
        except Py4JJavaError as error:
            if "ChecksumException" not in str(error) and "EOFException" not in str(error):
                # A store that does not answer, or a missing right, damages nothing.
                raise
            return "has another checksum than when it was written"
        except (ValueError, IndexError):
            return "is cut" if text else "is empty"
        return None

    def read_positions(self, generation: StreamGeneration) -> TopicOffsetMap:
        """Return the next offsets to read: after the last complete batch, or where the generation starts.

        A batch whose offsets are damaged is passed over, so that its records are read again.
        """
        location = self.location(generation)
        for number in sorted(self._list_batches(f"{location}/commits"), reverse=True):
            if self._find_problem(f"{location}/offsets/{number}", 3, must_exist=True) is None:
                return self._read_ends(generation, number)
        return generation.starts

    def _find_newest_begun(self) -> int:
        """Return the highest generation of which there is a checkpoint; -1 if there is none."""
        names = (_CHECKPOINT_FOLDER.fullmatch(name) for name in self._list_names(self._lake.checkpoint("")))
        numbers = (int(name[1] or 0) for name in names if name)
        begun = (number for number in numbers if self.has_begun(StreamGeneration(number, {})))
        return max(begun, default=-1)

    def has_begun(self, generation: StreamGeneration) -> bool:
        """Return whether a query has begun to read the generation."""
        files, java_path = self._open(f"{self.location(generation)}/metadata")
        return bool(files.exists(java_path))

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
        return [int(name) for name in self._list_names(folder) if name.isdecimal()]

    def _list_names(self, folder: str) -> list[str]:
        files, java_path = self._open(folder)
        if not files.exists(java_path):
            return []
        return [str(status.getPath().getName()) for status in files.listStatus(java_path)]

    def _list_lost_batches(self, folder: str) -> list[int]:
        """Return the batches of which a local folder has the checksum file alone.

        Batches before the oldest one are no loss: Spark deletes a file before its checksum file.
        """
        # Hadoop does not list checksum files.
        path = Path(folder.removeprefix("file://"))
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        checksums = (name.removeprefix(".").removesuffix(".crc") for name in names if name.endswith(".crc"))
        oldest = min((int(name) for name in names if name.isdecimal()), default=0)
        lost = (int(name) for name in checksums if name.isdecimal() and name not in names)
        return [batch for batch in lost if batch >= oldest]

    def _open(self, path: str) -> tuple[Any, Any]:
        """Return the file system of a path, which may be an object store, and the path for it."""
        java_path = self._jvm.org.apache.hadoop.fs.Path(path)
        return java_path.getFileSystem(self._spark._jsc.hadoopConfiguration()), java_path

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm


def _is_usable(row: TableRow) -> bool:
    """Return whether a row is one of a generation."""
    try:
        _parse_offsets(row["starts"] or "{}")
    except (ValueError, AttributeError, TypeError):
        return False
    return isinstance(row["generation"], int) and row["topic"] is not None and row["topic_id"] is not None


def _parse_offsets(text: str) -> dict[int, int]:
    return _to_numbers(json.loads(text))


def _to_numbers(partitions: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in partitions.items()}
