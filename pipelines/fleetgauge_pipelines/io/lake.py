"""Delta tables under one lake: Spark reads and writes the large ones, the driver the small ones."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.lake.table_files import contents
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import ALL, CLUSTER_MINUTES, Table
from fleetgauge_core.tables.row_diff import Change
from fleetgauge_pipelines.transforms.row_diff import changes

#: A table's property: the first day that has not expired.
_KEPT_FROM = "fleetgauge.keptFrom"


def settle(rows: DataFrame) -> DataFrame:
    """Compute rows once and forget how they came about.

    Unlike a cached frame, what is built on them no longer drags their whole plan
    through analysis; with small batches that costs more than the data does. Kept
    as bytes: millions of rows as objects occupy the collector more than their making does.
    Executors keep them twice, so that one may die.
    """
    alone = str(rows.sparkSession.sparkContext.master).startswith("local[")
    kept = StorageLevel.MEMORY_AND_DISK if alone else StorageLevel.MEMORY_AND_DISK_2
    return rows.localCheckpoint(storageLevel=kept)


class Lake:
    """One lake, a local directory or a URI that Spark can write. The pipeline is its only writer."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._location = location.rstrip("/")

    def path(self, table: Table) -> str:
        return f"{self._location}/{table.path}"

    @property
    def checkpoint(self) -> str:
        """Where the stream remembers how far it has read."""
        return f"{self._location}/_checkpoints/stream"

    def small(self, table: Table) -> TableStore:
        """A table whose rows the driver reads and writes, without Spark."""
        return TableStore(self._location, table)

    @property
    def is_there(self) -> bool:
        """Whether it has tables."""
        return TableStore(self._location, CLUSTER_MINUTES).exists

    def create_tables(self) -> bool:
        """Make what is missing, so that readers find every table and column from the start.

        Returns whether there was no table at all.
        """
        made = [self.create(table) for table in ALL]
        return all(made)

    def create(self, table: Table) -> bool:
        """Make it if it is missing; add the columns that it is missing. Returns whether it was missing."""
        return TableStore(self._location, table).create()

    def read(self, table: Table) -> DataFrame:
        return self._spark.read.format("delta").load(self.path(table))

    def count_files(self, table: Table, day: date | None) -> int:
        """Of a day, or of a table without days; from the log."""
        files = contents(self._location, table).files
        return len(files if day is None else [file for file in files if file.day == day])

    def compact(self, table: Table, day: date | None) -> None:
        """Put a day's small files together, or those of a table without days."""
        if table.small:
            self.small(table).compact()
            return
        optimize = self._delta(table).optimize()
        (optimize if day is None else optimize.where(f"day = DATE'{day}'")).executeCompaction()

    def vacuum(self, table: Table) -> None:
        """Remove files that no version within the table's retention refers to."""
        if not table.small:
            self._delta(table).vacuum()

    def expire(self, table: Table, before: date) -> None:
        """Remove whole days, for ever: the table says from now on that it begins there."""
        kept_from = self.kept_from(table)
        if kept_from is None or kept_from.date() < before:
            # First, so that whatever happens nothing is computed from days half gone.
            self._alter(table, f"SET TBLPROPERTIES ('{_KEPT_FROM}' = '{before}')")
        self._delta(table).delete(F.col("day") < F.lit(before))

    def kept_from(self, table: Table) -> datetime | None:
        """The start of the first day that has not expired; None if none ever did."""
        delta = open_table(self._location, table)
        day = delta.metadata().configuration.get(_KEPT_FROM) if delta else None
        return datetime.combine(date.fromisoformat(day), time(), UTC) if day else None

    def append(self, table: Table, rows: DataFrame) -> None:
        rows.select(*table.names).write.format("delta").mode("append").save(self.path(table))

    def bring_to(self, table: Table, wanted: DataFrame, stored: DataFrame) -> int:
        """Let the ``stored`` rows of the table be the ``wanted`` ones; returns how many rows that changed.

        Rows of the table that ``stored`` does not hold stay as they are. Where
        there are only new rows it is a plain append, and where nothing differs no commit.
        """
        diff = settle(changes(table, wanted, stored))
        counts = diff.groupBy("change", *table.partition_by).count().collect()
        self._apply(table, diff, counts)
        return sum(row["count"] for row in counts)

    def add(self, table: Table, rows: DataFrame) -> int:
        """Append rows, if there are any; returns how many. They are read twice: cache them if dear."""
        count = rows.count()
        if count:
            self.append(table, rows)
        return count

    def _alter(self, table: Table, how: str) -> None:
        path = self.path(table).replace("`", "``")
        self._spark.sql(f"ALTER TABLE delta.`{path}` {how}")

    def _delta(self, table: Table) -> DeltaTable:
        return DeltaTable.forPath(self._spark, self.path(table))

    def _apply(self, table: Table, diff: DataFrame, found: Sequence[Any]) -> None:
        """``found``: each change with its partition."""
        of_stored = [one for one in found if one["change"] != Change.INSERT]
        if of_stored:
            self._merge(table, diff, of_stored)
        elif found:
            self.append(table, diff)

    def _merge(self, table: Table, diff: DataFrame, of_stored: Sequence[Any]) -> None:
        same_row = _literal_partitions(table, of_stored)
        for name in table.key:
            same_row = same_row & F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}"))
        target = self._delta(table).alias("t")
        values: dict[str, str | Column] = {name: F.col(f"s.{name}") for name in table.names}
        (
            target.merge(diff.alias("s"), same_row)
            .whenMatchedDelete(F.col("s.change") == Change.DELETE.value)
            .whenMatchedUpdate(F.col("s.change") == Change.UPDATE.value, set=values)
            .whenNotMatchedInsert(F.col("s.change") == Change.INSERT.value, values=values)
            .execute()
        )


def _literal_partitions(table: Table, of_stored: Sequence[Any]) -> Column:
    """The partitions in which rows change, spelt out so that MERGE reads no other."""
    condition = F.lit(True)
    for name in table.partition_by:
        condition = condition & F.col(f"t.{name}").isin({one[name] for one in of_stored})
    return condition
