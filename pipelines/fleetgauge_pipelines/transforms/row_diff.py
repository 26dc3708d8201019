"""Which rows of a table have to change for it to hold the wanted rows: tables.row_diff as DataFrames."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.tables import ColumnType, Table
from fleetgauge_core.tables.row_diff import RowOperation


def diff_dataframes(table: Table, wanted: DataFrame, stored: DataFrame) -> DataFrame:
    """Return the wanted rows that are new or different, and the stored rows to delete.

    The column ``change`` has the operation. Rows are compared by the table's content columns. A difference in
    volatile columns alone is no change, so that computing the same rows again writes nothing.
    """
    old = stored.select(*table.column_names, _content(table).alias("old"))
    new = wanted.select(*table.column_names, _content(table).alias("new"))
    joined = _full_outer(table, new, old)
    change = (
        F.when(F.col("old").isNull(), F.lit(RowOperation.INSERT.value))
        .when(F.col("new").isNull(), F.lit(RowOperation.DELETE.value))
        .when(F.col("old") != F.col("new"), F.lit(RowOperation.UPDATE.value))
    )
    return (
        joined.withColumn("change", change)
        .where(F.col("change").isNotNull())
        .select(*table.column_names, "change")
    )


def _full_outer(table: Table, new: DataFrame, old: DataFrame) -> DataFrame:
    """Join both sides by key; the columns are the new row's, or the old row's if there is no new one."""
    renamed = old.select(*(F.col(name).alias(f"old_{name}") for name in table.column_names), "old")
    same_row = F.lit(True)
    for name in table.key:
        same_row = same_row & (F.col(name) == F.col(f"old_{name}"))
    is_new = F.col("new").isNotNull()
    columns = [
        F.when(is_new, F.col(name)).otherwise(F.col(f"old_{name}")).alias(name) for name in table.column_names
    ]
    return new.join(renamed, same_row, "full_outer").select(*columns, "old", "new")


def _content(table: Table) -> Column:
    """Return the content columns as a struct that can be compared: maps become sorted arrays of entries."""
    counts = {column.name for column in table.columns if column.type is ColumnType.COUNT_MAP}
    return F.struct(
        *(
            F.sort_array(F.map_entries(name)).alias(name) if name in counts else F.col(name)
            for name in table.compared_columns
        )
    )
