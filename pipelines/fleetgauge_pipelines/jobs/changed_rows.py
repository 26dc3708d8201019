"""Rows of a table that tasks have found to change, and the one commit that replaces them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from fleetgauge_core.tables import Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import FILE, WrittenFile, rewrite_file, write_files
from fleetgauge_pipelines.io.tasks import run_tasks
from fleetgauge_pipelines.transforms.row_diff import diff_tables


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows of a table that changed: files with the new ones, and by file the keys of rows that go."""

    files: tuple[WrittenFile, ...]
    removed: Mapping[str, pa.Table]
    changed: int


def write_differences(location: str, table: Table, wanted: pa.Table, stored: pa.Table) -> ChangedRows:
    """Write files of the wanted rows that are not stored; ``stored`` rows have their FILE."""
    diff = diff_tables(table, wanted, stored)
    going = stored.select([*table.key, FILE]).take(pa.array(diff.removed))
    return ChangedRows(
        tuple(write_files(location, wanted.take(pa.array(diff.written)))),
        group_by_file(going),
        diff.changed,
    )


def group_by_file(keys: pa.Table) -> dict[str, pa.Table]:
    """Return the keys of rows by the FILE that they are in."""
    return {
        path: keys.filter(pc.equal(keys[FILE], path)).drop_columns([FILE])
        for path in keys[FILE].unique().to_pylist()
    }


def _rewrite(location: str, key: Sequence[str], removed: tuple[str, pa.Table]) -> list[WrittenFile]:
    """Write a file again without the rows of some keys; ``removed`` are its path and the keys."""
    return rewrite_file(location, removed[0], key, removed[1])


def commit_changes(spark: SparkSession, lake: Lake, table: Table, parts: Sequence[ChangedRows]) -> int:
    """Replace the rows of a table that changed in one commit; return how many changed."""
    removed: dict[str, list[pa.Table]] = defaultdict(list)
    for part in parts:
        for path, keys in part.removed.items():
            removed[path].append(keys)
    rewritten = run_tasks(
        spark,
        partial(_rewrite, lake.path(table), table.key),
        [(path, pa.concat_tables(keys)) for path, keys in removed.items()],
    )
    files = [file for part in parts for file in part.files]
    lake.commit_files(table, files + [file for files in rewritten for file in files], removed)
    return sum(part.changed for part in parts)
