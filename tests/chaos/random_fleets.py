"""Holds Spark's tables to the oracle's on random fleets, fifty of them in a lake.

    python -m tests.chaos.random_fleets --fleets 500 --seed 1

Every lake is delivered in two parts, out of order, with late and repeated
records, around moments at which clocks change and weeks begin and close.
Prints one JSON value; exit 0 iff no row of any table differs in any column.
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
from tests.chaos._streaming import say
from tests.oracle.random_fleets import random_lake
from tests.spark.agreement import Comparison, compare, take

FLEETS_OF_A_LAKE = 50
EXAMPLES = 20


def lakes(fleets: int, seed: int) -> Iterator[tuple[int, int]]:
    """Each lake's own seed and how many fleets it has."""
    for number, first in enumerate(range(0, fleets, FLEETS_OF_A_LAKE)):
        yield seed + number, min(FLEETS_OF_A_LAKE, fleets - first)


def hold(spark: SparkSession, folder: Path, seed: int, fleets: int) -> dict[str, Comparison]:
    one = random_lake(seed, fleets)
    return compare(folder, one, take(spark, folder, one))


def demonstrate(spark: SparkSession, fleets: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rows: Counter[str] = Counter()
    examples: list[str] = []
    found = 0
    for of_lake, size in lakes(fleets, seed):
        with tempfile.TemporaryDirectory(prefix="fleetgauge-random-") as folder:
            compared = hold(spark, Path(folder), of_lake, size)
        rows.update({path: one.rows for path, one in compared.items()})
        told = [f"lake {of_lake}: {path} {one}" for path, of in compared.items() for one in of.differences]
        found += len(told)
        examples += told
        say(f"lake {of_lake}: {size} fleets, {len(told)} differences")
    return {
        "fleets": fleets,
        "rows": dict(rows),
        "differences": found,
        "examples": examples[:EXAMPLES],
        "seconds": round(time.monotonic() - started),
    }


@click.command()
@click.option("--fleets", default=500, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Of the first lake; the others' follow.")
def main(fleets: int, seed: int) -> None:
    spark = open_session("fleetgauge-random-fleets", say)
    try:
        report = demonstrate(spark, fleets, seed)
    finally:
        spark.stop()
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["differences"] else 0)


if __name__ == "__main__":
    main()
