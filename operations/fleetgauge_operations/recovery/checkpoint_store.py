"""recovery/checkpoints: all that was ever learned of mirrored partitions, in the order in which it was.

MirrorMaker's own topic is compacted, so what is not kept here is gone. A commit carries how far each topic
of offset syncs has been read, so that a restart reads each sync once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core.lake.delta_table import (
    BROKEN,
    open_table,
    reason,
    schema,
)
from fleetgauge_core.lake.table_store import Row, StaleProgressError, TableStore, TableStoreError
from fleetgauge_core.tables import CHECKPOINTS
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import Fact

_SCHEMA = schema(CHECKPOINTS)
#: Beside the topics of syncs a commit says how many rows there are.
_ROWS = "rows"
_BATCH = 100_000


class StoreLostError(Exception):
    """What is in the lake is not what this process thinks; its next start reads it afresh. One line."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the lake holds at one version: its facts in order, and the ordinal of the next."""

    facts: Iterator[Fact]
    next_ordinal: int


class CheckpointStore:
    """One lake's. Every call raises TableStoreError. Only one may write: a second one's commits fail."""

    def __init__(self, lake: str) -> None:
        self._lake = lake.rstrip("/")
        self._store = TableStore(lake, CHECKPOINTS, create=True)
        self._read: DeltaTable | None = None

    def read(self) -> Kept:
        self._read = table = self._table()
        if table is None:
            return Kept(iter(()), 0)
        try:
            rows = table.to_pyarrow_table().cast(_SCHEMA).sort_by("ordinal")
            return Kept(_facts(rows), table.transaction_version(_ROWS) or 0)
        except (*BROKEN, ValueError) as error:
            raise self._failed("read", error) from error

    def read_until(self, syncs: str) -> int | None:
        """The offset up to which that topic had been read when all was; None where nothing of it had."""
        try:
            return None if self._read is None else self._read.transaction_version(syncs)
        except BROKEN as error:
            raise self._failed("read", error) from error

    def append(self, facts: Iterable[Fact], first_ordinal: int, read_until: Mapping[str, int]) -> None:
        """All in one commit, with how far each topic of syncs has been read.

        Raises StoreLostError where another one has written, or a commit of ours that had failed.
        """
        rows = [_row(ordinal, fact) for ordinal, fact in enumerate(facts, first_ordinal)]
        progress = {**read_until, _ROWS: first_ordinal + len(rows)}
        try:
            self._store.append(rows, progress, expected={_ROWS: first_ordinal})
        except StaleProgressError as error:
            raise StoreLostError(str(error)) from error

    def compact(self) -> None:
        """Put small files together."""
        self._store.compact()

    def _table(self) -> DeltaTable | None:
        try:
            return open_table(self._lake, CHECKPOINTS)
        except BROKEN as error:
            raise self._failed("read", error) from error

    def _failed(self, verb: str, error: Exception) -> TableStoreError:
        return TableStoreError(f"{self._lake}/{CHECKPOINTS.path}: cannot be {verb}: {reason(error)}")


def _facts(rows: pa.Table) -> Iterator[Fact]:
    for batch in rows.to_batches(max_chunksize=_BATCH):
        yield from map(_fact, batch.to_pylist())


def _row(ordinal: int, fact: Fact) -> Row:
    route, ids, epoch, one = fact
    return {
        "ordinal": ordinal,
        "source": route.source,
        "destination": route.destination,
        "topic": route.topic,
        "partition": route.partition,
        "source_topic_id": ids.source,
        "destination_topic_id": ids.destination,
        "epoch": epoch,
        "src_offset": one.src_offset,
        "dst_offset": one.dst_offset,
        "origin": one.origin.value,
        "observed_at": datetime.fromtimestamp(one.observed_ms / 1000, UTC),
    }


def _fact(row: Row) -> Fact:
    observed_ms = round(row["observed_at"].timestamp() * 1000)
    return Fact(
        Route(row["source"], row["destination"], row["topic"], row["partition"]),
        TopicIds(row["source_topic_id"], row["destination_topic_id"]),
        row["epoch"],
        Checkpoint(row["src_offset"], row["dst_offset"], observed_ms, Origin(row["origin"])),
    )
