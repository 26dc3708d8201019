"""A few rows between the driver and Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def dataframe(spark: SparkSession, rows: Sequence[tuple[Any, ...]], ddl: str) -> DataFrame:
    """Rows with the columns of a DDL string; through Arrow, as plain lists would start Python workers."""
    schema: Any = StructType.fromDDL(ddl)
    arrow = to_arrow_schema(schema)
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(arrow)]
    table: Any = pa.Table.from_arrays(columns, schema=arrow)
    frame: DataFrame = spark.createDataFrame(table, schema)
    return frame


def utc(at: datetime) -> datetime:
    """Spark hands out naive datetimes in the driver's zone."""
    return at.astimezone(UTC)
