"""Convert small numbers of rows between the driver process and Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def create_dataframe(spark: SparkSession, rows: Sequence[tuple[Any, ...]], ddl: str) -> DataFrame:
    """Return a frame of rows with the columns of a DDL string.

    The rows are passed as an Arrow table, because Spark would start Python workers for a list.
    """
    schema: Any = StructType.fromDDL(ddl)
    arrow = to_arrow_schema(schema)
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(arrow)]
    table: Any = pa.Table.from_arrays(columns, schema=arrow)
    frame: DataFrame = spark.createDataFrame(table, schema)
    return frame


def to_utc(time: datetime) -> datetime:
    """Return a collected timestamp in UTC; PySpark returns naive times in the driver's zone."""
    return time.astimezone(UTC)
