"""Store all checkpoints of mirrored partitions in recovery/checkpoints, in the order of observation.

MirrorMaker's own topic of offset syncs is compacted, so old syncs exist only here. Each commit also stores
how far each topic of offset syncs has been read, so that after a restart no sync is read twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import (
    DELTA_ERRORS,
    describe_table_error,
    open_table,
)
from fleetgauge_core.lake.table_store import StaleProgressError, TableRow, TableStore, TableStoreError
from fleetgauge_core.tables import CHECKPOINTS
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord

_SCHEMA = arrow_schema(CHECKPOINTS)
#: Application id under which a commit stores the number of rows, besides those of the topics of syncs.
_ROW_COUNT_ID = "rows"
_BATCH_ROWS = 100_000


class CheckpointStoreLostError(OperationalError):
    """The stored checkpoints differ from what this process wrote; a restart reads them again."""


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    """All stored checkpoints in order, and the ordinal of the next one."""

    records: Iterator[CheckpointRecord]
    next_ordinal: int


class CheckpointStore:
    """The checkpoints of one lake. Only one process may write: the commits of a second one fail.

    All methods raise TableStoreError.
    """

    def __init__(self, lake: str) -> None:
        self._lake = lake.rstrip("/")
        self._store = TableStore(lake, CHECKPOINTS, create=True)
        self._table: DeltaTable | None = None

    def read(self) -> StoredCheckpoints:
        """Read all checkpoints."""
        self._table = table = self._open_table()
        if table is None:
            return StoredCheckpoints(iter(()), 0)
        try:
            rows = table.to_pyarrow_table().cast(_SCHEMA).sort_by("ordinal")
            return StoredCheckpoints(_parse_rows(rows), table.transaction_version(_ROW_COUNT_ID) or 0)
        except (*DELTA_ERRORS, ValueError) as error:
            raise self._describe_error("read", error) from error

    def read_until(self, syncs: str) -> int | None:
        """Return the offset up to which a topic of syncs is stored, as of ``read``; None if none of it is."""
        try:
            return None if self._table is None else self._table.transaction_version(syncs)
        except DELTA_ERRORS as error:
            raise self._describe_error("read", error) from error

    def append(
        self, records: Iterable[CheckpointRecord], first_ordinal: int, read_until: Mapping[str, int]
    ) -> None:
        """Write checkpoints, and how far each topic of syncs has been read, in one commit.

        Raises: CheckpointStoreLostError if another process has written, or if an earlier commit that was
        reported as failed has succeeded.
        """
        rows = [_build_row(ordinal, record) for ordinal, record in enumerate(records, first_ordinal)]
        progress = {**read_until, _ROW_COUNT_ID: first_ordinal + len(rows)}
        try:
            self._store.append(rows, progress, expected={_ROW_COUNT_ID: first_ordinal})
        except StaleProgressError as error:
            raise CheckpointStoreLostError(str(error)) from error

    def compact(self) -> None:
        """Compact small files, and delete files that are no longer referred to. Raises: TableStoreError."""
        self._store.compact()
        self._store.vacuum()

    def _open_table(self) -> DeltaTable | None:
        try:
            return open_table(self._lake, CHECKPOINTS)
        except DELTA_ERRORS as error:
            raise self._describe_error("read", error) from error

    def _describe_error(self, verb: str, error: Exception) -> TableStoreError:
        problem = describe_table_error(error)
        return TableStoreError(f"{self._lake}/{CHECKPOINTS.path}: cannot be {verb}: {problem}")


def _parse_rows(rows: pa.Table) -> Iterator[CheckpointRecord]:
    for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
        yield from map(_parse_row, batch.to_pylist())


def _build_row(ordinal: int, record: CheckpointRecord) -> TableRow:
    route, ids, epoch, checkpoint = record
    return {
        "ordinal": ordinal,
        "source": route.source,
        "destination": route.destination,
        "topic": route.topic,
        "partition": route.partition,
        "source_topic_id": ids.source,
        "destination_topic_id": ids.destination,
        "epoch": epoch,
        "src_offset": checkpoint.src_offset,
        "dst_offset": checkpoint.dst_offset,
        "origin": checkpoint.origin.value,
        "observed_at": datetime.fromtimestamp(checkpoint.observed_ms / 1000, UTC),
    }


def _parse_row(row: TableRow) -> CheckpointRecord:
    observed_ms = round(row["observed_at"].timestamp() * 1000)
    return CheckpointRecord(
        PartitionRoute(row["source"], row["destination"], row["topic"], row["partition"]),
        TopicIds(row["source_topic_id"], row["destination_topic_id"]),
        row["epoch"],
        Checkpoint(row["src_offset"], row["dst_offset"], observed_ms, CheckpointOrigin(row["origin"])),
    )
