"""Compares the tables computed by Spark with the oracle's on random fleets, fifty in a lake.

    python -m tests.chaos.random_fleets --fleets 500 --seed 1

Every lake is ingested in two parts, out of order, with late and repeated
records, around clock changes and the starts and ends of weeks. Prints one JSON
value; exits with 0 iff no row of any table differs in any column.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.session import open_session
from tests.chaos._streaming import log_progress
from tests.oracle.random_fleets import random_lake
from tests.spark.agreement import Comparison, compare, write_lake

FLEETS_OF_A_LAKE = 50
EXAMPLES = 20


def plan_lakes(fleets: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yield the seed and the number of fleets of each lake."""
    for number, first in enumerate(range(0, fleets, FLEETS_OF_A_LAKE)):
        yield seed + number, min(FLEETS_OF_A_LAKE, fleets - first)


def hold(spark: SparkSession, folder: Path, seed: int, fleets: int) -> dict[str, Comparison]:
    lake = random_lake(seed, fleets)
    return compare(folder, lake, write_lake(spark, folder, lake))


def demonstrate(spark: SparkSession, fleets: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rows: Counter[str] = Counter()
    examples: list[str] = []
    differences = 0
    for lake_seed, size in plan_lakes(fleets, seed):
        with tempfile.TemporaryDirectory(prefix="fleetgauge-random-") as folder:
            compared = hold(spark, Path(folder), lake_seed, size)
        rows.update({path: comparison.rows for path, comparison in compared.items()})
        lines = [
            f"lake {lake_seed}: {path} {difference}"
            for path, comparison in compared.items()
            for difference in comparison.differences
        ]
        differences += len(lines)
        examples += lines
        log_progress(f"lake {lake_seed}: {size} fleets, {len(lines)} differences")
    return {
        "fleets": fleets,
        "rows": dict(rows),
        "differences": differences,
        "examples": examples[:EXAMPLES],
        "seconds": round(time.monotonic() - started),
    }


@click.command()
@click.option("--fleets", default=500, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the first lake; the following lakes have the next seeds.",
)
def main(fleets: int, seed: int) -> None:
    spark = open_session("fleetgauge-random-fleets", log_progress)
    try:
        report = demonstrate(spark, fleets, seed)
    finally:
        spark.stop()
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["differences"] else 0)


if __name__ == "__main__":
    main()
