"""The Spark session of a command and its lake. Spark is imported when the lake is opened."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fleetgauge_core.lake.delta_table import ensure_usable_path
from fleetgauge_core.lake.lease import hold_lease
from fleetgauge_core.runtime.console import console

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fleetgauge_pipelines.io.lake import Lake


#: How long a command that writes to a lake may take to end once it is told to. A batch gets 90 s of it; one
#: that is broken off is repeated by the next run. Kubernetes waits 120 s.
SHUTDOWN_DEADLINE_S = 105


@contextmanager
def open_lake_for_writing(
    location: str, only_writer: bool = False
) -> Iterator[tuple["SparkSession", "Lake"]]:
    """Yield a Spark session and the lake while holding the lake's writer lease, which each commit confirms.

    ``only_writer``: the operator makes sure that no other process writes, and no lease is taken.

    Raises: LeaseError when another process holds the lease; SetupError when Java or the jars are missing;
    LakePathError when no lake can be in this folder.
    """
    ensure_usable_path(location)
    context = click.get_current_context(silent=True)
    command = context.command_path if context else "fleetgauge"
    with (
        hold_lease(location, command, console.print, is_only_writer=only_writer) as lease,
        open_lake_for_reading(location) as (spark, lake),
    ):
        yield spark, lake.with_lease(lease)


@contextmanager
def open_lake_for_pipeline(
    location: str, only_writer: bool = False
) -> Iterator[tuple["SparkSession", "Lake"]]:
    """Yield what open_lake_for_writing does, to a command that validates what it writes.

    great-expectations is imported while Spark starts.
    """
    ensure_usable_path(location)
    from fleetgauge_pipelines.quality.gate import load_great_expectations

    threading.Thread(target=load_great_expectations, name="great-expectations", daemon=True).start()
    with open_lake_for_writing(location, only_writer) as opened:
        yield opened


@contextmanager
def open_lake_for_reading(location: str) -> Iterator[tuple["SparkSession", "Lake"]]:
    """Yield a Spark session and the lake without its lease: another process may write to it meanwhile.

    Raises: SetupError when Java or the jars are missing; LakePathError when no lake can be in this folder;
    LakeFileError in place of an error of the block about a damaged file of the lake or a full disk.
    """
    # Before Spark, which takes seconds to start.
    ensure_usable_path(location)
    from fleetgauge_pipelines.io.lake import Lake
    from fleetgauge_pipelines.io.lake_errors import explaining_lake_errors
    from fleetgauge_pipelines.io.session import open_session

    sigint_handler = signal.getsignal(signal.SIGINT)
    spark = open_session("fleetgauge", console.print)
    # PySpark's own handler would abort whichever call to the JVM is in progress.
    signal.signal(signal.SIGINT, sigint_handler)
    try:
        lake = Lake(spark, location)
        with explaining_lake_errors(lake.location):
            yield spark, lake
    finally:
        spark.stop()
