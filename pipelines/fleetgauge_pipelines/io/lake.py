"""The Delta tables of a lake: tasks read and write files of the large ones, the driver commits all."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from deltalake import DeltaTable as OpenTable
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.lake.delta_table import (
    DELTA_ERRORS,
    describe_table_error,
    open_table,
    store_newest_version,
)
from fleetgauge_core.lake.lease import Lease
from fleetgauge_core.lake.table_repair import RepairOutcome, repair_before_writing
from fleetgauge_core.lake.table_snapshot import read_snapshot
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import ALL_TABLES, CLUSTER_MINUTES, Table
from fleetgauge_pipelines.io.column_append import append_columns
from fleetgauge_pipelines.io.table_files import TableFiles, WrittenFile, commit_files, list_files
from fleetgauge_pipelines.io.tasks import map_files
from fleetgauge_pipelines.simulation.silver import Columns

T = TypeVar("T")

_log = logging.getLogger("fleetgauge.lake")

#: Table property with the first day that has not expired.
_KEPT_FROM = "fleetgauge.keptFrom"


def materialize(rows: DataFrame) -> DataFrame:
    """Compute rows once, and return a frame without the plan that computed them (a local checkpoint).

    What is read again later is the same then, also if its source has changed. Rows are stored as bytes,
    because millions of objects would keep the garbage collector busy; on a cluster two executors store each
    partition, so that one may fail.
    """
    is_local = str(rows.sparkSession.sparkContext.master).startswith("local[")
    level = StorageLevel.MEMORY_AND_DISK if is_local else StorageLevel.MEMORY_AND_DISK_2
    return rows.localCheckpoint(storageLevel=level)


def _summarize(
    columns: Sequence[str],
    where: pc.Expression | None,
    summarize: Callable[[pa.Table], T],
    merge: Callable[[Iterable[T]], T],
    files: TableFiles,
) -> T:
    empty = files.schema.empty_table().select(list(columns))
    return merge(summarize(rows) for rows in chain([empty], files.read_parts(columns, where)))


class Lake:
    """A lake's tables, in a local folder or under a URI that Spark can write to.

    The pipeline is their only writer; with a ``lease``, every commit confirms first that it still is.
    """

    def __init__(self, spark: SparkSession, location: str, lease: Lease | None = None) -> None:
        self._spark = spark
        self._lease = lease
        # Spark takes a relative path for the name of a table in some places, and for a path in others.
        self._location = location.rstrip("/") if "://" in location else str(Path(location).absolute())

    def with_lease(self, lease: Lease) -> "Lake":
        """Return the lake with a lease that is confirmed before each commit."""
        return Lake(self._spark, self._location, lease)

    @property
    def location(self) -> str:
        """The absolute path of its folder, or its URI."""
        return self._location

    def path(self, table: Table) -> str:
        """Return the location of a table."""
        return f"{self._location}/{table.path}"

    def checkpoint(self, name: str) -> str:
        """Return the location of a stream's checkpoint, with the offsets that it has processed."""
        return f"{self._location}/_checkpoints/{name}"

    def table_store(self, table: Table) -> TableStore:
        """Return a table whose rows the driver process reads and writes without Spark."""
        return TableStore(self._location, table, confirm=self.confirm_lease)

    @property
    def exists(self) -> bool:
        """Return whether the lake has tables."""
        return TableStore(self._location, CLUSTER_MINUTES).exists

    def create_tables(self) -> bool:
        """Create missing tables and columns, so that readers find all of them from the start.

        Return whether the lake had no table at all.
        """
        created = [self.create(table) for table in ALL_TABLES]
        return all(created)

    def create(self, table: Table) -> bool:
        """Create a table, or add its missing columns; return whether the table was missing.

        It is repaired first, if that loses nothing but the pipeline's own progress.
        """
        self.repair(table)
        return self.table_store(table).create()

    def repair(self, table: Table) -> RepairOutcome:
        """Repair a table before it is written, if that loses nothing but the pipeline's own progress."""
        self.confirm_lease()
        try:
            repair = repair_before_writing(self._location, table)
        except DELTA_ERRORS as error:
            problem = describe_table_error(error)
            raise TableStoreError(f"{self.path(table)}: cannot be opened: {problem}") from error
        if repair.outcome in (RepairOutcome.REPAIRED, RepairOutcome.LOST):
            _log.warning("%s is repaired: %s", self.path(table), repair.detail)
        return repair.outcome

    def read(self, table: Table) -> DataFrame:
        """Return the rows of a table's newest version."""
        return self._spark.read.format("delta").load(self.path(table))

    def count_files(self, table: Table, day: date | None) -> int:
        """Return the number of files of a day, or of a table without days, from the transaction log."""
        files = read_snapshot(self._location, table).files
        return len(files if day is None else [file for file in files if file.day == day])

    def compact(self, table: Table, day: date | None) -> None:
        """Compact the small files of a day, or of a table without days."""
        if table.small:
            self.table_store(table).compact()
            return
        with self._committing(table):
            optimize = self._delta_table(table).optimize()
            (optimize if day is None else optimize.where(f"day = DATE'{day}'")).executeCompaction()

    def vacuum(self, table: Table) -> None:
        """Delete files that no version within the table's retention refers to."""
        if table.small:
            self.table_store(table).vacuum()
            return
        with self._committing(table):
            self._delta_table(table).vacuum()

    def expire(self, table: Table, before: date) -> None:
        """Permanently delete the days before a day, which becomes the table's first day."""
        kept_from = self.kept_from(table)
        if kept_from is None or kept_from.date() < before:
            # Set before the rows are deleted, so that after a failure nothing is computed from incomplete
            # days.
            self._alter_table(table, f"SET TBLPROPERTIES ('{_KEPT_FROM}' = '{before}')")
        with self._committing(table):
            self._delta_table(table).delete(F.col("day") < F.lit(before))

    def kept_from(self, table: Table) -> datetime | None:
        """Return the start of the first day that has not expired; None if no day has."""
        delta = open_table(self._location, table)
        day = delta.metadata().configuration.get(_KEPT_FROM) if delta else None
        return datetime.combine(date.fromisoformat(day), time(), UTC) if day else None

    def append_columns(self, table: Table, parts: Iterable[Columns], map_key: str) -> None:
        """Append parts of numpy columns in one commit without Spark; see column_append."""
        self.confirm_lease()
        append_columns(self.path(table), parts, map_key)
        store_newest_version(self._location, table)

    def list_files(self, table: Table, days: Collection[date] | None = None) -> TableFiles:
        """Return the files of a table's newest version, of some days if it is partitioned by day.

        They have the bounds of the key, of the cluster and the minute, and of when rows were ingested.
        """
        bounded = {*table.key, "cluster_id", "minute", "ingested_at"} & set(table.column_names)
        return list_files(self._open(table), self.path(table), bounded, days)

    def scan(
        self,
        files: TableFiles,
        columns: Sequence[str],
        where: pc.Expression | None,
        summarize: Callable[[pa.Table], T],
        merge: Callable[[Iterable[T]], T],
    ) -> T:
        """Let tasks summarize columns of the rows for which a condition holds; return all merged.

        A task summarizes at most 20,000 rows at a time. What is merged is at least one summary.
        """
        work = partial(_summarize, columns, where, summarize, merge)
        return merge(map_files(self._spark, files, work) or [work(files)])

    def commit_files(self, table: Table, files: Sequence[WrittenFile], removed: Collection[str] = ()) -> None:
        """Add files that tasks have written to a table, and remove others; no commit without either."""
        if files or removed:
            delta = self._open(table)
            with self._committing(table):
                commit_files(delta, files, removed)

    def confirm_lease(self) -> None:
        """Raise LeaseLostError if another process may write to the lake."""
        if self._lease:
            self._lease.confirm()

    def _open(self, table: Table) -> OpenTable:
        delta = open_table(self._location, table)
        if delta is None:
            raise TableStoreError(f"{self.path(table)}: there is no table")
        return delta

    def _alter_table(self, table: Table, clause: str) -> None:
        path = self.path(table).replace("`", "``")
        with self._committing(table):
            self._spark.sql(f"ALTER TABLE delta.`{path}` {clause}")

    @contextmanager
    def _committing(self, table: Table) -> Iterator[None]:
        """Confirm the lease before a commit of Spark, and store the table's newest version after it."""
        self.confirm_lease()
        yield
        store_newest_version(self._location, table)

    def _delta_table(self, table: Table) -> DeltaTable:
        return DeltaTable.forPath(self._spark, self.path(table))
