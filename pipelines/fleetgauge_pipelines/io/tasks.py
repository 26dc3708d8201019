"""Work that Spark spreads over its tasks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.table_files import TableFile, TableFiles

S = TypeVar("S")
T = TypeVar("T")

#: Tasks a core among which files are divided: some have more to do than others.
_TASKS_A_CORE = 4


def run_tasks(spark: SparkSession, work: Callable[[S], T], inputs: Sequence[S]) -> list[T]:
    """Let a task of Spark do the work for each input; return the results in order."""
    if not inputs:
        return []
    results: list[T] = spark.sparkContext.parallelize(inputs, len(inputs)).map(work).collect()
    return results


def map_files(spark: SparkSession, files: TableFiles, work: Callable[[TableFiles], T]) -> list[T]:
    """Let tasks do the work for some of the files each; return the results in the order of the files."""
    return run_tasks(spark, work, divide_files(files, _TASKS_A_CORE * spark.sparkContext.defaultParallelism))


def divide_files(files: TableFiles, most_parts: int) -> list[TableFiles]:
    """Return at most so many parts with about as many rows each."""
    parts: list[list[TableFile]] = []
    wanted, rows = max(1, -(-files.rows // most_parts)), 0
    for file in files.files:
        if not parts or (rows >= wanted * len(parts) and len(parts) < most_parts):
            parts.append([])
        parts[-1].append(file)
        rows += file.rows
    return [replace(files, files=tuple(part)) for part in parts]
