"""Backfill: files or a topic through the same batch as the stream's, piece by piece.

A piece is a stretch of whole files, or of offsets, in their order, so that of two records
of one run and sequence the same one comes first however they are cut into pieces. (Unless
their minutes lie on different days: a batch looks for known records on the days that it
touches. No agent gives a sequence twice, so only damage could make such records.)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import Admin, TopicReader
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.tables import Column, Table, Type
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_files import read_files, record_files
from fleetgauge_pipelines.io.record_topics import OffsetRange, offset_ranges, read_ranges
from fleetgauge_pipelines.jobs.batch import Outcome, Pipeline

#: A piece has at least one file, however large that is.
PIECE_BYTES = 64 * 1024 * 1024

#: What has been taken whole; not for readers, so it lies apart from the tables.
TAKEN = Table(
    path="_checkpoints/backfill",
    key=("item",),
    columns=(Column("item", Type.STRING), Column("taken_at", Type.TIMESTAMP)),
)


class Item(Protocol):
    """What is taken whole. ``key`` is equal as long as its content is."""

    @property
    def bytes(self) -> int: ...

    @property
    def key(self) -> str: ...


T = TypeVar("T", bound=Item)


@dataclass(frozen=True, slots=True)
class Records:
    """Where records come from: what there is, in its order, and how to read some of it."""

    name: str
    items: Sequence[Item]
    read: Callable[[SparkSession, Sequence[Any]], DataFrame]


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill did; ``left`` pieces were not come to as it was asked to end."""

    outcomes: Sequence[Outcome]
    skipped: int
    left: int
    gold_rows_changed: int


#: Told the pieces that are done, how many there are, and what the last one did (None: it was done before).
Advance = Callable[[int, int, Outcome | None], None]


def records_in(folder: Path) -> Records:
    """Raises FileNotFoundError."""
    return Records(folder.name, record_files(folder), read_files)


def records_of(telemetry: Telemetry, topic: str) -> Records:
    """What the topic holds now. Raises KafkaUnavailableError, LookupError where there is no such topic."""
    admin = Admin(telemetry.access, timeout_s=10)
    admin.start()
    view = admin.topic(topic)
    if view is None:
        raise LookupError(f"{telemetry.bootstrap} has no topic {topic}")
    reader = TopicReader(telemetry.access, topic, "fleetgauge-backfill")
    reader.start()
    try:
        ranges = offset_ranges(view.topic_id, reader.bounds(view.partitions))
    finally:
        reader.stop()

    def read(spark: SparkSession, some: Sequence[OffsetRange]) -> DataFrame:
        return read_ranges(spark, telemetry.access, topic, some)

    return Records(topic, ranges, read)


def run_backfill(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    records: Records,
    clock: datetime,
    again: bool,
    stopping: Stopping,
    advance: Advance,
) -> Backfilled:
    """Take what was not taken whole before, or with ``again`` everything, which changes nothing.

    Ends between pieces when asked to.
    """
    pipeline, taken = Pipeline(spark, lake, fleet), _Taken(lake)
    pipeline.open()
    taken.open()
    pieces = in_pieces(records.items, PIECE_BYTES)
    outcomes: list[Outcome] = []
    done = 0
    advance(done, len(pieces), None)
    while done < len(pieces) and not stopping.is_set():
        items = [item for item in pieces[done] if again or item not in taken]
        outcome = None
        if items:
            raw = records.read(spark, items)
            outcome = pipeline.process(raw, f"backfill/{records.name}/{done}", clock)
            taken.add(items, clock)
            outcomes.append(outcome)
        done += 1
        advance(done, len(pieces), outcome)
    # Time alone closes weeks too.
    gold_changed = [one.gold_rows_changed for one in outcomes] or [
        pipeline.compute_weeks((), f"backfill/{records.name}", clock)
    ]
    return Backfilled(outcomes, done - len(outcomes), len(pieces) - done, sum(gold_changed))


class _Taken:
    """The items that were taken whole, as the lake remembers them."""

    def __init__(self, lake: Lake) -> None:
        self._table = lake.small(TAKEN)
        self._keys: set[str] = set()

    def open(self) -> None:
        self._table.create()
        self._keys = {row["item"] for row in self._table.rows(columns=("item",))}

    def __contains__(self, item: Item) -> bool:
        return item.key in self._keys

    def add(self, items: Sequence[Item], clock: datetime) -> None:
        new = [{"item": item.key, "taken_at": clock} for item in items if item not in self]
        if new:
            self._table.append(new)
            self._keys |= {item.key for item in items}


def in_pieces(items: Iterable[T], at_most_bytes: int) -> list[list[T]]:
    """The items in their order, as many to a piece as fit; an item that is larger is a piece of its own."""
    pieces: list[list[T]] = []
    room = 0
    for item in items:
        if not pieces or item.bytes > room:
            pieces.append([])
            room = at_most_bytes
        pieces[-1].append(item)
        room -= item.bytes
    return pieces
