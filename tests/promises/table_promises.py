"""The lake's tables: columns with types, keys, partitions, and the reasons in ops/quarantine."""

from collections.abc import Iterator

from fleetgauge_core.tables import (
    ALL_TABLES,
    QUARANTINE,
    QUARANTINE_REASONS,
    Table,
)


def collect() -> Iterator[str]:
    for table in ALL_TABLES:
        yield from _describe_table(table)
    yield from (f"{QUARANTINE.path}: reason may be {reason}" for reason in QUARANTINE_REASONS)


def _describe_table(table: Table) -> Iterator[str]:
    yield f"{table.path}: key {', '.join(table.key)}"
    yield f"{table.path}: partitioned by {', '.join(table.partition_by) or 'nothing'}"
    yield from (f"{table.path}: column {column.name} {column.type.value}" for column in table.columns)
