"""What a table is, independent of the engine that reads or writes it."""

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """Column types, spelt as Spark SQL spells them (Delta's own names)."""

    STRING = "string"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "bigint"
    DOUBLE = "double"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BINARY = "binary"
    INTS = "array<int>"
    COUNTS = "map<string,int>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; nullable unless it is part of the key."""

    name: str
    type: Type


class Owner(StrEnum):
    """Who writes a table; no other process may."""

    PIPELINE = "stream, run, backfill, simulate"
    """One of them at a time, under the lake's lease."""
    CORRECTIONS = "correct, dash"
    ACTIONS = "mitigate, recover promote, dash"
    RECOVERY = "recover"


def columns(**types: Type) -> tuple[Column, ...]:
    """Return columns in the order of the keywords."""
    return tuple(Column(name, type_) for name, type_ in types.items())


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table: where it lies under the lake, what identifies a row.

    ``volatile`` columns say when a row was computed, not what it holds: two
    rows that differ in nothing else are the same row.

    ``owner`` says which process writes it. A ``small`` table is one whose changed rows
    its writer holds in memory, so that it needs no Spark.
    """

    path: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    owner: Owner = Owner.PIPELINE
    small: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def content(self) -> tuple[str, ...]:
        """The columns that make two rows of one key the same row or not."""
        return tuple(n for n in self.names if n not in self.key and n not in self.volatile)

    @property
    def ddl(self) -> str:
        """The columns as a Spark SQL schema string."""
        return ", ".join(f"{column.name} {column.type.value}" for column in self.columns)
