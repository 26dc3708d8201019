"""The Arrow schema of a table. Not imported with the tables: processes without a lake have no pyarrow."""

from collections.abc import Mapping

import pyarrow as pa

from fleetgauge_core.tables.model import ColumnType, Table

#: The Arrow type of each column type, as delta-rs reads and writes it.
ARROW_TYPES: Mapping[ColumnType, pa.DataType] = {
    ColumnType.STRING: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    ColumnType.BINARY: pa.binary(),
    ColumnType.INT_ARRAY: pa.list_(pa.int32()),
    ColumnType.COUNT_MAP: pa.map_(pa.string(), pa.int32()),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([(column.name, ARROW_TYPES[column.type]) for column in table.columns])
