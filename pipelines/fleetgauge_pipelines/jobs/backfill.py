"""Backfill: process files or a topic with the stream's own batch, one piece of the input at a time.

A piece is a run of consecutive input splits (whole files, or offset ranges of a topic) in a fixed order. So
of two records with the same run_id and sequence the same one comes first, however the input is cut into
pieces. The exception are two such records whose minutes lie on different days, because a batch looks for
stored duplicates only on the days that it touches. An agent never uses a sequence twice, so such records are
damaged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import ClusterAdmin, TopicReader
from fleetgauge_core.metadata import TopicChange, TopicChangeKind
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import Column, ColumnType, Table
from fleetgauge_pipelines.io.lake import Lake, materialize
from fleetgauge_pipelines.io.record_files import list_record_files, read_record_files
from fleetgauge_pipelines.io.record_topics import (
    OffsetRange,
    find_missing_ranges,
    read_offset_ranges,
    remove_ranges,
    split_offsets,
)
from fleetgauge_pipelines.io.stream_checkpoint import StreamCheckpoint
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.changes import add_changes
from fleetgauge_pipelines.jobs.lost_records import LostRecords
from fleetgauge_pipelines.jobs.stream_topics import StreamChange

#: Upper bound of a piece; a larger split is a separate piece.
PIECE_BYTES = 64 * 1024 * 1024

#: The splits that were processed completely. An internal table, and so not in a folder of public tables.
PROCESSED_SPLITS = Table(
    path="_checkpoints/backfill",
    key=("item",),
    columns=(Column("item", ColumnType.STRING), Column("taken_at", ColumnType.TIMESTAMP)),
)


class InputSplit(Protocol):
    """A part of the input that is processed as a whole: a file, or a range of a partition's offsets."""

    @property
    def bytes(self) -> int:
        """Return its size, which may be an estimate."""

    @property
    def key(self) -> str:
        """Return an identifier that stays the same as long as the content does."""


Split = TypeVar("Split", bound=InputSplit)


@dataclass(frozen=True, slots=True)
class RecordSource:
    """An input of probe records: its splits in a fixed order, and how to read several of them.

    ``topic_id`` is the ID of a topic, of which records may expire while they are read; None for files.
    """

    name: str
    splits: Sequence[InputSplit]
    read: Callable[[SparkSession, Sequence[Any]], DataFrame]
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """What a backfill did: the result of each batch, and how many pieces had been processed before.

    ``remaining`` pieces were not started, because a shutdown was requested.
    """

    batches: Sequence[BatchResult]
    skipped: int
    remaining: int
    gold_rows_changed: int


#: Called with the number of pieces done, the number of pieces, and the result of the last one (None if it was
#: skipped, and before the first).
ReportPiece = Callable[[int, int, BatchResult | None], None]


def open_record_folder(folder: Path) -> RecordSource:
    """Return the record files of a folder as an input.

    Raises: FileNotFoundError when the folder has none.
    """
    return RecordSource(folder.name, list_record_files(folder), read_record_files)


def open_no_records() -> RecordSource:
    """Return an input without records, for a backfill of changes alone."""
    return RecordSource("changes", (), read_record_files)


def open_record_topic(telemetry: Telemetry, topic: str) -> RecordSource:
    """Return as an input what a topic of the telemetry cluster holds now.

    Raises: KafkaUnavailableError when the cluster cannot be reached, LookupError when it has no such topic.
    """
    admin = ClusterAdmin(telemetry.access, timeout_s=10)
    admin.start()
    view = admin.describe_topic(topic)
    if view is None:
        raise LookupError(f"{telemetry.bootstrap} has no topic {topic}")
    reader = TopicReader(telemetry.access, topic, "fleetgauge-backfill")
    reader.start()
    try:
        ranges = split_offsets(view.topic_id, reader.read_offset_bounds(view.partitions))
    finally:
        reader.stop()

    def read(spark: SparkSession, splits: Sequence[OffsetRange]) -> DataFrame:
        return read_offset_ranges(spark, telemetry.access, topic, splits)

    return RecordSource(topic, ranges, read, view.topic_id)


def run_backfill(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    records: RecordSource,
    changes: Sequence[ClusterChange],
    clock: datetime,
    again: bool,
    shutdown: ShutdownFlag,
    advance: ReportPiece,
) -> BackfillResult:
    """Process every split that was not processed completely before, or with ``again`` every split.

    The ``changes`` are stored first; they may explain minutes that are there already, of closed weeks, too.
    Processing a split again changes no table. Stops between two pieces once a shutdown was requested.
    """
    pipeline, processed = Pipeline(spark, lake, fleet), _ProcessedSplits(lake)
    losses = _BackfillLosses(spark, lake, records, processed)
    pipeline.open()
    processed.open()
    if changes:
        pipeline.expect_annotations({change.event_id for change in changes})
        add_changes(lake, changes)
    pieces = split_into_pieces(records.splits, PIECE_BYTES)
    batches: list[BatchResult] = []
    done = 0
    advance(done, len(pieces), None)
    while done < len(pieces) and not shutdown.is_set():
        splits = [split for split in pieces[done] if again or split not in processed]
        batch = None
        if splits:
            raw = records.read(spark, splits)
            if records.topic_id:
                # Read once: of a second reading more records may have expired.
                raw = materialize(raw)
                losses.store(splits, raw, clock)
            batch = pipeline.process(raw, f"backfill/{records.name}/{done}", clock)
            processed.record(splits, clock)
            batches.append(batch)
        done += 1
        advance(done, len(pieces), batch)
    name = f"backfill/{records.name}"
    if changes and not batches:
        gold_changed = [pipeline.apply_annotations(name, clock).gold_rows_changed]
    else:
        # Without a new record weeks may still be due to close.
        gold_changed = [batch.gold_rows_changed for batch in batches] or [
            pipeline.compute_weeks((), name, clock)
        ]
    if done == len(pieces):
        gold_changed.append(pipeline.compute_change_costs(clock))
    return BackfillResult(batches, done - len(batches), len(pieces) - done, sum(gold_changed))


class _BackfillLosses:
    """Stores which records of a topic expired since the backfill began, unless the stream reads it too.

    The stream itself finds what it has not read. What an earlier backfill has read is not lost.
    """

    def __init__(
        self, spark: SparkSession, lake: Lake, records: RecordSource, processed: "_ProcessedSplits"
    ) -> None:
        self._checkpoint = StreamCheckpoint(spark, lake)
        self._lost_records = LostRecords(lake, records.name)
        self._records = records
        self._processed = processed

    def store(self, splits: Sequence[Any], raw: DataFrame, clock: datetime) -> None:
        topic_id = self._records.topic_id
        missing = find_missing_ranges(raw, splits)
        lost = remove_ranges(missing, self._processed.list_ranges(topic_id)) if missing else []
        if lost and not self._checkpoint.reads_topic(topic_id):
            change = TopicChange(TopicChangeKind.EXPIRED, topic_id, lost=tuple(lost))
            first = lost[0]
            label = f"backfill/{topic_id}/{first.partition}/{first.start}-{first.end}"
            self._lost_records.store([StreamChange(label, self._records.name, change)], clock)


class _ProcessedSplits:
    """The keys of the splits that were processed completely, kept in the lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table = lake.table_store(PROCESSED_SPLITS)
        self._keys: set[str] = set()

    def open(self) -> None:
        self._lake.create(PROCESSED_SPLITS)
        self._keys = {row["item"] for row in self._table.rows(columns=("item",))}

    def __contains__(self, split: InputSplit) -> bool:
        return split.key in self._keys

    def list_ranges(self, topic_id: str | None) -> list[OffsetRange]:
        """Return the offset ranges of a topic."""
        return [OffsetRange.parse(key) for key in self._keys if key.startswith(f"{topic_id}/")]

    def record(self, splits: Sequence[InputSplit], clock: datetime) -> None:
        new = [{"item": split.key, "taken_at": clock} for split in splits if split not in self]
        if new:
            self._table.append(new)
            self._keys |= {split.key for split in splits}


def split_into_pieces(splits: Iterable[Split], max_bytes: int) -> list[list[Split]]:
    """Group splits in their order into pieces of at most ``max_bytes``; a larger one is a separate piece."""
    pieces: list[list[Split]] = []
    room = 0
    for split in splits:
        if not pieces or split.bytes > room:
            pieces.append([])
            room = max_bytes
        pieces[-1].append(split)
        room -= split.bytes
    return pieces
