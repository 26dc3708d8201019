"""Write the archive of the classes that Spark's driver loads, and print its path.

It has the classes that are loaded after some small work of each kind that the pipeline has for Spark.
"""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_pipelines.io.cache import default_cache_folder, lock_folder
from fleetgauge_pipelines.io.class_archive import FOLDER, find_archive, store_archive
from fleetgauge_pipelines.io.java import find_java
from fleetgauge_pipelines.io.session import open_session
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.io.tasks import run_tasks

_PARTIAL = ".partial-"
_ENDING_S = 120


def write_archive(cache: Path, progress: Callable[[str], None]) -> Path:
    """Write the archive unless there is one, and return its path."""
    java, folder = find_java(cache, progress), cache / FOLDER
    with (
        lock_folder(folder, progress),
        tempfile.TemporaryDirectory(dir=folder, prefix=_PARTIAL) as scratch,
    ):
        _remove_abandoned(folder, Path(scratch))
        if archive := find_archive(cache, java):
            return archive
        partial = Path(scratch, "classes.jsa")
        _load_classes(open_session("class archive", progress, archive_to=partial), Path(scratch))
        _end_jvm()
        return store_archive(partial, cache, java)


def _remove_abandoned(folder: Path, scratch: Path) -> None:
    """Remove what a process that was killed has left."""
    for abandoned in folder.glob(f"{_PARTIAL}*"):
        if abandoned != scratch:
            shutil.rmtree(abandoned, ignore_errors=True)


def _load_classes(spark: SparkSession, scratch: Path) -> None:
    run_tasks(spark, abs, range(2))
    rows = create_dataframe(spark, [(number,) for number in range(2)], "value bigint")
    rows.mapInArrow(_pass_on, "value bigint").collect()
    stream = spark.readStream.format("rate").load().writeStream.foreachBatch(_store_and_count)
    query = stream.option("checkpointLocation", str(scratch / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()
    spark.stop()


def _pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _store_and_count(rows: DataFrame, _: int) -> None:
    rows.persist().count()
    rows.unpersist()


def _end_jvm() -> None:
    """End the JVM, which writes the archive then."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_ENDING_S)


if __name__ == "__main__":
    # What was begun is removed also when the process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    click.echo(write_archive(default_cache_folder(), lambda text: click.echo(text, err=True)))
