"""What has to change for a table to hold what it should; the twin of tables.changes for many rows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.tables import Table, Type
from fleetgauge_core.tables.row_diff import Change


def changes(table: Table, wanted: DataFrame, stored: DataFrame) -> DataFrame:
    """The wanted rows that are new or different and the stored rows that should go, each with its ``change``.

    Rows are compared by content; volatile columns alone change nothing, so that
    computing the same thing again writes nothing.
    """
    old = stored.select(*table.names, _content(table).alias("old"))
    new = wanted.select(*table.names, _content(table).alias("new"))
    joined = _full_outer(table, new, old)
    change = (
        F.when(F.col("old").isNull(), F.lit(Change.INSERT.value))
        .when(F.col("new").isNull(), F.lit(Change.DELETE.value))
        .when(F.col("old") != F.col("new"), F.lit(Change.UPDATE.value))
    )
    return (
        joined.withColumn("change", change).where(F.col("change").isNotNull()).select(*table.names, "change")
    )


def _full_outer(table: Table, new: DataFrame, old: DataFrame) -> DataFrame:
    """Both sides by key; the columns are the new row's, or the old one's where there is no new one."""
    kept = old.select(*(F.col(name).alias(f"old_{name}") for name in table.names), "old")
    same_row = F.lit(True)
    for name in table.key:
        same_row = same_row & (F.col(name) == F.col(f"old_{name}"))
    is_new = F.col("new").isNotNull()
    columns = [
        F.when(is_new, F.col(name)).otherwise(F.col(f"old_{name}")).alias(name) for name in table.names
    ]
    return new.join(kept, same_row, "full_outer").select(*columns, "old", "new")


def _content(table: Table) -> Column:
    """The columns that count, comparable: maps become sorted entries."""
    counts = {column.name for column in table.columns if column.type is Type.COUNTS}
    return F.struct(
        *(
            F.sort_array(F.map_entries(name)).alias(name) if name in counts else F.col(name)
            for name in table.content
        )
    )
