"""Sends corrupted records and noise through the pipeline: every record ends in the right table.

    python -m tests.chaos.fuzz_records --records 100000 --seed 1

Batches contain bit flips, truncations, splices, trailing bytes, wrong fingerprints, invalid varints, huge
counts and noise among valid records, replays and conflicts. Prints one JSON value. Exits with 0 iff no batch
fails or hangs; bronze, replays and quarantine together contain what was sent; every row of quarantine has a
known reason and its bytes; no broken record is in bronze, and no valid record is in quarantine.
"""

import json
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import click

from fleetgauge_pipelines.io.session import open_session
from tests.chaos._streaming import log_progress
from tests.spark.fuzz import judge, process, values

#: A batch takes seconds; after this time it is considered to hang.
DEADLINE_S = 600


def fuzz(folder: Path, records: int, batches: int, seed: int) -> dict[str, Any]:
    log_progress(f"generating {records} values")
    sent = values(records, Random(seed))
    spark = open_session("fleetgauge-fuzz", log_progress)
    started = time.monotonic()

    def start_batch(number: int) -> None:
        signal.alarm(DEADLINE_S)
        log_progress(f"batch {number + 1} of {batches}")

    try:
        result = process(spark, folder / "lake", sent, batches, start_batch)
    except Exception as error:
        traceback.print_exc()
        return {"sent": records, "broke": f"{type(error).__name__}", "passed": False}
    finally:
        signal.alarm(0)
        spark.stop()
    seconds = round(time.monotonic() - started, 1)
    log_progress("comparing the lake with the sent records")
    report = judge(folder / "lake", sent, result)
    return {"seed": seed, **report, "seconds": seconds, "passed": not any(report["faults"].values())}


def _raise_timeout(*_: object) -> NoReturn:
    raise TimeoutError(f"a batch took over {DEADLINE_S} s")


@click.command()
@click.option("--records", default=100_000, show_default=True, type=click.IntRange(min=100))
@click.option("--batches", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Folder that keeps the lake.")
def main(records: int, batches: int, seed: int, folder: Path | None) -> None:
    signal.signal(signal.SIGALRM, _raise_timeout)
    with tempfile.TemporaryDirectory(prefix="fleetgauge-fuzz-") as temporary:
        report = fuzz((folder or Path(temporary)).resolve(), records, batches, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
