"""recovery/checkpoints: all that was ever learned of mirrored partitions, in the order in which it was.

MirrorMaker's own topic is compacted, so what is not kept here is gone. A commit carries how far each topic
of offset syncs has been read, so that a restart reads each sync once.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from fleetgauge_operations.recovery.checkpoint import Checkpoint, Origin, Route, TopicIds
from fleetgauge_operations.recovery.known import Fact
from fleetgauge_pipelines.lakes.kept import KeptTableError, Row
from fleetgauge_pipelines.lakes.store import BROKEN, open_table, reason, schema
from fleetgauge_pipelines.tables import CHECKPOINTS

_SCHEMA = schema(CHECKPOINTS)
#: Beside the topics of syncs a commit says how many rows there are.
_ROWS = "rows"


class CheckpointStore:
    """One lake's. Every call raises KeptTableError. Only one may write: a second one's commits fail."""

    def __init__(self, lake: str) -> None:
        self._lake = lake.rstrip("/")

    def facts(self) -> Iterator[Fact]:
        """All of them, in order."""
        table = self._table()
        if table is None:
            return
        try:
            rows = table.to_pyarrow_table().cast(_SCHEMA).sort_by("ordinal")
        except (*BROKEN, ValueError) as error:
            raise self._failed("read", error) from error
        for batch in rows.to_batches(max_chunksize=100_000):
            yield from map(_fact, batch.to_pylist())

    def next_ordinal(self) -> int:
        return self.read_until(_ROWS) or 0

    def read_until(self, syncs: str) -> int | None:
        """The offset up to which that topic has been read; None where nothing of it has."""
        table = self._table()
        return None if table is None else table.transaction_version(syncs)

    def append(self, facts: Iterable[Fact], first_ordinal: int, read_until: Mapping[str, int]) -> None:
        """All in one commit, with how far each topic of syncs has been read."""
        rows = [_row(ordinal, fact) for ordinal, fact in enumerate(facts, first_ordinal)]
        reached = {**read_until, _ROWS: first_ordinal + len(rows)}
        done = [Transaction(name, offset) for name, offset in reached.items()]
        try:
            table = self._table() or self._made()
            if (table.transaction_version(_ROWS) or 0) != first_ordinal:
                raise KeptTableError(
                    f"{self._lake}/{CHECKPOINTS.path}: somebody else writes it too: let one collector run"
                )
            frame = pa.Table.from_pylist(rows, schema=_SCHEMA)
            properties = CommitProperties(app_transactions=done)
            write_deltalake(table, frame, mode="append", commit_properties=properties)
        except BROKEN as error:
            raise self._failed("written", error) from error

    def tidy(self) -> None:
        """Put small files together."""
        table = self._table()
        if table is not None:
            try:
                table.optimize.compact()
            except BROKEN as error:
                raise self._failed("put together", error) from error

    def _made(self) -> DeltaTable:
        return DeltaTable.create(f"{self._lake}/{CHECKPOINTS.path}", _SCHEMA, mode="ignore")

    def _table(self) -> DeltaTable | None:
        try:
            return open_table(self._lake, CHECKPOINTS)
        except BROKEN as error:
            raise self._failed("read", error) from error

    def _failed(self, verb: str, error: Exception) -> KeptTableError:
        return KeptTableError(f"{self._lake}/{CHECKPOINTS.path}: cannot be {verb}: {reason(error)}")


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
