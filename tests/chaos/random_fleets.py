"""Compares the tables computed by Spark with the oracle's on random fleets, fifty in a lake.

    python -m tests.chaos.random_fleets --fleets 500 --seed 1

Every lake is ingested in two parts, out of order, with late and repeated records, around clock changes and
the starts and ends of weeks. Finished lakes are kept in a file, and the same command continues after them.
Prints one JSON value; exits with 0 iff no row of any table differs in any column.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

from fleetgauge_pipelines.io.session import open_session
from tests.chaos._results import Result, Results, results_option
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


def run_lake(spark: SparkSession, seed: int, fleets: int) -> Result:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fleetgauge-random-") as folder:
        compared = hold(spark, Path(folder), seed, fleets)
    differences = [
        f"lake {seed}: {path} {difference}"
        for path, comparison in compared.items()
        for difference in comparison.differences
    ]
    log_progress(f"lake {seed}: {fleets} fleets, {len(differences)} differences")
    return {
        "lake": seed,
        "fleets": fleets,
        "rows": {path: comparison.rows for path, comparison in compared.items()},
        "differences": len(differences),
        "examples": differences[:EXAMPLES],
        "seconds": round(time.monotonic() - started),
    }


def summarize(lakes: Sequence[Result]) -> Result:
    rows: Counter[str] = Counter()
    for lake in lakes:
        rows.update(lake["rows"])
    return {
        "fleets": sum(lake["fleets"] for lake in lakes),
        "rows": dict(rows),
        "differences": sum(lake["differences"] for lake in lakes),
        "examples": [line for lake in lakes for line in lake["examples"]][:EXAMPLES],
        "seconds": sum(lake["seconds"] for lake in lakes),
    }


@click.command()
@click.option("--fleets", default=500, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the first lake; the following lakes have the next seeds.",
)
@results_option("random_fleets.jsonl")
def main(fleets: int, seed: int, results: Results) -> None:
    plan = list(plan_lakes(fleets, seed))
    done = {(line["lake"], line["fleets"]): line for line in results.read()}
    if not done.keys() >= set(plan):
        spark = open_session("fleetgauge-random-fleets", log_progress)
        try:
            for lake in plan:
                if lake not in done:
                    done[lake] = run_lake(spark, *lake)
                    results.add(done[lake])
        finally:
            spark.stop()
    report = summarize([done[lake] for lake in plan])
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["differences"] else 0)


if __name__ == "__main__":
    main()
