"""Definition of a table, independent of the engine that reads or writes it."""

from dataclasses import dataclass
from enum import StrEnum


class ColumnType(StrEnum):
    """A column type; the values are the type names of Spark SQL."""

    STRING = "string"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "bigint"
    DOUBLE = "double"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BINARY = "binary"
    INT_ARRAY = "array<int>"
    COUNT_MAP = "map<string,int>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; it is nullable unless it is part of the key."""

    name: str
    type: ColumnType


class TableOwner(StrEnum):
    """The commands that may write a table; all other processes only read it."""

    PIPELINE = "stream, run, backfill, simulate"
    """One command at a time, while it holds the lease of the lake."""
    CORRECTIONS = "correct, dash"
    ACTIONS = "mitigate, recover promote, dash"
    RECOVERY = "recover"


def make_columns(**types: ColumnType) -> tuple[Column, ...]:
    """Return columns with the given names and types, in the order of the keyword arguments."""
    return tuple(Column(name, type_) for name, type_ in types.items())


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table of the lake.

    ``path`` is relative to the lake. ``key`` are the columns that identify a row. ``volatile``
    columns tell when or from where a row was written; rows that differ only in them are equal.
    ``owner`` are the commands that may write the table. The changed rows of a ``small`` table fit
    into the memory of its writer, so that it can be written without Spark.
    """

    path: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    owner: TableOwner = TableOwner.PIPELINE
    small: bool = True

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def is_internal(self) -> bool:
        """Whether it is a command's own progress, which is read by no other command."""
        return self.path.startswith("_")

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Names of the columns by which two rows with the same key are compared."""
        return tuple(name for name in self.column_names if name not in (*self.key, *self.volatile))

    @property
    def ddl(self) -> str:
        """The columns as a Spark SQL schema string."""
        return ", ".join(f"{column.name} {column.type.value}" for column in self.columns)
